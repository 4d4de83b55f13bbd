"""Versions that a user chose of a library in Go or Java: ``--with NAME@VERSION``.

    pins(LIBRARIES.load("go-redsync"), ["redsync@4.13.0"])
    # (Pin("github.com/go-redsync/redsync/v4", "v4.13.0"),)

``NAME==VERSION`` means the same.  NAME is a module (``go.etcd.io/etcd/client/v3``) or an artifact
(``org.redisson:redisson``) that the worker is built with, its last part (``redisson``), or the name
of the library here (its ``extra["main"]``).  Modules that are released as one move together
(``MOVES_WITH``).

Trap: another major version of a Go module is another module, with another path, so no number can
choose it; it is refused and not silently left out.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from clients.libraries import Library
from harness.core.errors import UserError

PIN = re.compile(r"(?P<name>[A-Za-z0-9][\w./:~-]*?)\s*(?:==|@)\s*(?P<version>v?\d[\w.+-]*)")
EXAMPLES: Mapping[str, str] = {
    "go": "such as --with redsync@4.12.0",
    "java": "such as --with redisson@3.45.0",
}
MOVES_WITH: Mapping[str, tuple[str, ...]] = {
    "go.etcd.io/etcd/client/v3": ("go.etcd.io/etcd/api/v3", "go.etcd.io/etcd/client/pkg/v3"),
}
_POM = "{http://maven.apache.org/POM/4.0.0}"


class Pin(NamedTuple):
    """A module or artifact and the version that it is to have."""

    name: str
    version: str


def pins(library: Library, chosen: Sequence[str]) -> tuple[Pin, ...]:
    """What was chosen, as full names; UserError lists all that the worker is not built with."""
    known = _direct(library)
    found: dict[str, str] = {}
    problems = []
    for index, text in enumerate(chosen):
        match = PIN.fullmatch(text.strip())
        if match is None:
            problems.append(
                f"client.with[{index}]: {text!r} names no one version; library {library.name!r} is "
                f"written in {library.language.title()}, so write NAME@VERSION, "
                f"{EXAMPLES[library.language]}"
            )
            continue
        name = _full(library, match["name"], known)
        if name is None:
            problems.append(
                f"client.with[{index}]: the worker of {library.name!r} is not built with "
                f"{match['name']!r}; it is with {', '.join(known)}"
            )
            continue
        version = match["version"]
        if library.language == "go":
            version = "v" + version.removeprefix("v")
            wrong = _other_major(name, version)
            if wrong:
                problems.append(f"client.with[{index}]: {wrong}")
                continue
        for moved in (name, *MOVES_WITH.get(name, ())):
            if moved == name or moved not in found:
                found[moved] = version
    if problems:
        raise UserError("the library cannot be built as chosen", problems)
    return tuple(Pin(name, version) for name, version in found.items())


def pom(text: str, chosen: Sequence[Pin]) -> str:
    """A pom with other versions of its dependencies."""
    ET.register_namespace("", _POM[1:-1])
    root = ET.fromstring(text)  # noqa: S314 - a file of ours
    wanted = dict(chosen)
    for one in root.iter(f"{_POM}dependency"):
        version = one.find(f"{_POM}version")
        name = _artifact(one)
        if version is not None and name in wanted:
            version.text = wanted[name]
    return ET.tostring(root, encoding="unicode")


def _direct(library: Library) -> list[str]:
    """What the worker's source itself asks for: no module that only others need."""
    root = library.requirements.parent
    if library.language == "java":
        tree = ET.fromstring((root / "pom.xml").read_text())  # noqa: S314 - a file of ours
        return [_artifact(one) for one in tree.iter(f"{_POM}dependency")]
    lines = (root / "go.mod").read_text().splitlines()
    return [line.split()[0] for line in lines if re.match(r"\t\S+ v\d\S*$", line)]


def _artifact(dependency: ET.Element) -> str:
    parts = (dependency.findtext(f"{_POM}{part}", "") for part in ("groupId", "artifactId"))
    return ":".join(parts)


def _full(library: Library, name: str, known: Sequence[str]) -> str | None:
    if name in known:
        return name
    if name == library.name:
        return library.extra.get("main")
    return next((one for one in known if _last(one) == name), None)


def _last(name: str) -> str:
    """``redsync`` of ``github.com/go-redsync/redsync/v4``, ``redisson`` of its artifact."""
    return re.split(r"[/:]", re.sub(r"/v\d+$", "", name))[-1]


def _other_major(module: str, version: str) -> str:
    """Why a Go module cannot have this version, "" if it can."""
    path = re.search(r"/v(\d+)$", module)
    major = re.match(r"v(\d+)", version)
    have, want = (path[1] if path else "0 or 1"), (major[1] if major else "")
    if want in have.split(" or "):
        return ""
    return (
        f"{version} of {module} cannot be had: this module is major version {have}, and in Go "
        "another major version is another module, which the worker's source does not import; "
        f"name a version {have}.x, or bring a worker of your own (lockhavoc worker check)"
    )
