"""Which version of a library runs, under which interpreter, or whose adapter: what a user chose.

    choice = LibraryChoice(with_=("redis==5.0.0",))
    target = settle(LIBRARIES.load("redis-py"), choice, progress=print)
    argv = target.library.command(target.python)

Without a choice a library runs with its hash-locked requirements.  ``with_`` and ``wheel`` replace
the requirement of the distribution that they name (the library's own name stands for its main one,
so ``redis-py==5.0.0`` means ``redis==5.0.0``) and leave the others; ``python`` takes an interpreter
as it is; ``adapter`` runs a file of the user's in place of a registered library, in an environment
that holds nothing but what ``with_`` and ``wheel`` name.  For a library in Go or Java ``with_``
names modules or artifacts (``NAME@VERSION``, pinned.py), and the other three do not apply.

Traps.  A requirement that begins with ``-`` would be an option of the installer and is refused.  An
adapter is code: it runs because the user names it, and is asked first what it can do (its hello),
so that what is wrong with it is said before a server is started.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clients import environments, pinned, toolchains
from clients.environments import Progress
from clients.libraries import ROOM, Library
from harness.core.errors import UserError

OWN = ROOM / "requirements" / "own.in"  # of an adapter that a user names: nothing
REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*(?:$|[=<>!~@;])"
)
WHEEL_PARTS = 5  # name-version-python-abi-platform.whl


@dataclass(frozen=True, kw_only=True)
class LibraryChoice:
    """What a user chose.  with_: requirements; python, wheel, adapter: paths.  Empty: nothing."""

    python: str | None = None
    with_: tuple[str, ...] = ()
    wheel: str | None = None
    adapter: str | None = None


@dataclass(frozen=True, kw_only=True)
class Target:
    """What runs.  record: for env.json (interpreter, installed versions, digests of files)."""

    library: Library
    python: Path
    record: Mapping[str, Any]


def problems(choice: LibraryChoice) -> Iterator[str]:
    """What is wrong with a choice as it stands, each named by its field of ``[client]``."""
    if choice.python and (choice.with_ or choice.wheel):
        other = "with" if choice.with_ else "wheel"
        yield (
            f"client.python: {choice.python!r} is used as it is, so client.{other} has no place "
            "to go to; install it there and leave one of the two out"
        )
    for index, text in enumerate(choice.with_):
        if not (REQUIREMENT.match(text) or pinned.PIN.fullmatch(text.strip())):
            yield (
                f"client.with[{index}]: {text!r} is no requirement; write a distribution and a "
                "version, such as redis==5.0.0"
            )
    if choice.wheel is not None and _wheel_name(choice.wheel) is None:
        yield (
            f"client.wheel: {choice.wheel!r} is not named like a wheel "
            "(NAME-VERSION-PYTHON-ABI-PLATFORM.whl); build one with `python -m build --wheel`"
        )
    if choice.adapter is not None and not choice.adapter.endswith(".py"):
        yield f"client.adapter: {choice.adapter!r} is no Python file; an adapter is one .py file"


def settle(
    library: Library | None, choice: LibraryChoice, *, progress: Progress | None = None
) -> Target:
    """Makes what is needed to run ``library`` (None: the adapter that the choice names) as chosen.

    UserError if a choice cannot be met: no such file, no such version, an adapter that cannot be
    loaded or lacks something.  HarnessError if the installation fails for other reasons.
    """
    found = [*problems(choice), *_missing(choice)]
    found += _for_python_only(library, choice)
    if choice.adapter is None and library is None:
        found.append("client.library: missing, and client.adapter names no adapter in its place")
    if found:
        raise UserError("the library cannot be run as chosen", found)
    record: dict[str, Any] = {}
    if choice.adapter is not None:
        path = Path(os.path.abspath(choice.adapter))
        record["adapter"] = {"file": path.name, "sha256": _digest(path)}
        library = _own(path)
    assert library is not None
    chosen: tuple[str, ...] = ()
    digest = ""
    if choice.with_ or choice.wheel:
        python_ = library.language == "python"
        chosen = requirements_of(library, choice) if python_ else choice.with_
        record["with"] = list(chosen)
    if choice.wheel is not None:
        digest = _digest(Path(choice.wheel))
        record["wheel"] = {"file": Path(choice.wheel).name, "sha256": digest}
    python = environments.ensure(
        library, python=choice.python, chosen=chosen, digest=digest, progress=progress
    )
    if choice.adapter is not None:
        library = _as_it_says(library, python)
    held = (
        environments.packages(python)
        if library.language == "python"
        else toolchains.packages(library, python)
    )
    record |= {"interpreter": str(python), "packages": held}
    return Target(library=library, python=python, record=record)


def _for_python_only(library: Library | None, choice: LibraryChoice) -> Iterator[str]:
    """What is chosen in the way of another language."""
    if choice.adapter is not None or library is None or library.language == "python":
        for index, text in enumerate(choice.with_):
            if pinned.PIN.fullmatch(text.strip()) and "==" not in text:
                name, _, version = text.partition("@")
                yield (
                    f"client.with[{index}]: {text!r} is the way of Go and Java, and this library "
                    f"is written in Python; write {name.strip()}=={version.strip()}"
                )
    elif choice.wheel is not None:
        yield (
            f"client.wheel: a wheel holds Python, and library {library.name!r} is written in "
            f"{library.language.title()}; name a version by --with NAME@VERSION, or examine a "
            "worker of your own by `lockhavoc worker check -- CMD`"
        )


def requirements_of(library: Library, choice: LibraryChoice) -> tuple[str, ...]:
    """The library's requirements with what was chosen in place of the same distributions."""
    lines = {_name(line): line for line in _top_level(library)}
    main = next(iter(lines), "")
    given = list(choice.with_)
    if choice.wheel is not None:
        given.append(f"{_wheel_name(choice.wheel)} @ {Path(choice.wheel).resolve().as_uri()}")
    for text in given:
        name = _name(text)
        if main and name not in lines and name in (library.name, library.requirements.stem):
            text = main + text[len(name) :]  # the library's name means its main distribution
            name = main
        lines[name] = text
    return tuple(lines.values())


def _top_level(library: Library) -> list[str]:
    """Requirements that were locked: the .in file beside the lock, else all that it holds."""
    source = library.requirements.with_suffix(".in")
    path = source if source.exists() else library.requirements
    lines = (line.split(" #")[0].rstrip(" \\").strip() for line in path.read_text().splitlines())
    return [line for line in lines if line and not line.startswith(("#", "-"))]


def _name(requirement: str) -> str:
    """The distribution that a requirement names, normalised (PEP 503)."""
    match = REQUIREMENT.match(requirement)
    name = match["name"] if match else requirement
    return re.sub(r"[-_.]+", "-", name).lower()


def _wheel_name(wheel: str) -> str | None:
    path = Path(wheel)
    parts = path.name.removesuffix(".whl").split("-")
    return _name(parts[0]) if path.suffix == ".whl" and len(parts) >= WHEEL_PARTS else None


def _missing(choice: LibraryChoice) -> Iterator[str]:
    for name in ("wheel", "adapter"):
        path = getattr(choice, name)
        if path is not None and not Path(path).is_file():
            yield f"client.{name}: there is no file {path!r}"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _own(path: Path) -> Library:
    """A user's adapter before it has said what it is."""
    return Library(
        name=path.stem, adapter=path, requirements=OWN, imports=("sys",), backends=(), says="own"
    )


def _as_it_says(library: Library, python: Path) -> Library:
    """The same with name, lease and powers from the adapter's hello; UserError if it has none."""
    hello = hello_of(library, python)
    powers = tuple(hello["powers"])
    return Library(
        name=str(hello["library"]),
        adapter=library.adapter,
        requirements=library.requirements,
        imports=library.imports,
        backends=(),
        lease=hello["lease"]["kind"],
        powers=powers,
        fencing="tokens of the adapter's own" if "fenced" in powers else "",
        loss_signal="callback" if "signals-loss" in powers else "none",
        says=f"the adapter {library.adapter.name}",
    )


def hello_of(library: Library, python: Path) -> dict[str, Any]:
    """Starts a worker with an empty stdin and returns the first thing that it says."""
    try:
        done = subprocess.run(
            library.command(python),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=environments.clean(os.environ),
            timeout=environments.PROBE_TIMEOUT_S,
            check=False,
        )
        said = done.stdout.splitlines()
        trouble = done.stderr.strip().splitlines()[-1:]
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"client.adapter: {library.adapter.name} said nothing in {error.timeout:.0f} s; "
            "loading an adapter must not connect or wait"
        ) from error
    event: dict[str, Any] = {}
    if said:
        try:
            event = json.loads(said[0])
        except ValueError:
            trouble = [f"its first line on stdout is {said[0][:200]!r}, no line of the protocol"]
    if event.get("event") == "hello":
        return dict(event["value"])
    why = str(event.get("error") or " ".join(trouble) or f"exit status {done.returncode}")
    fix = "the contract is in clients/worker/adapter.py, an example in docs/how-to/own-library.md"
    module = re.search(r"No module named '([^'.]+)", why)
    if module:
        fix = f"name the distribution that has {module[1]!r}: --with NAME==VERSION, or --wheel FILE"
    raise UserError(f"client.adapter: {library.adapter.name} cannot be used: {why}; {fix}")
