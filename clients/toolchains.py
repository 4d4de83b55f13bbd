"""Workers in compiled languages: built from source when they are asked for, kept in the cache.

    program(LIBRARIES.load("go-redsync"), progress=print)     # path of the worker's program

What an environment is for a library in Python, a build is for the others: the library comes from
its own registry, in the versions and with the checksums that lie beside the source, and what was
built once is used again.  The place is ``.../lockhavoc/envs/<name>-<digest>``, the digest being
over the sources, the compiler's version and the versions that a user chose (pinned.py).  Chosen
ones replace those beside the source; their checksums are Go's or Maven's business, not ours.

Traps.  Go: cgo is off, so the program needs no libc; the clock shim, which is a libc function in
front of another, does not reach it (``clock_refused``).  Java: jars are fetched by Maven and
counted only if their digests are those in ``jars.sha256``; the program is a script that ends in
``exec``, so that the worker's pid is the Java machine's.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from clients import pinned
from clients.libraries import Library
from clients.pinned import Pin
from harness.core import jars
from harness.core.commands import built
from harness.core.errors import HarnessError, RefusedError, UserError

Progress = Callable[[str], None]

BUILD_TIMEOUT_S = 900.0  # gRPC from source takes two minutes of processor time
READY = ".ready"
PROGRAM = "worker"
NEEDS = {"go": ("go",), "java": ("java", "javac", "mvn")}
SCRIPT = """\
#!/bin/sh
export _JAVA_SR_SIGNUM=40
here=$(dirname "$0")
exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx256m -XX:-UsePerfData \\
  -XX:+ErrorFileToStderr -cp "$here/classes:$here/jars/*" MAIN "$@"
"""
"""Starts a worker in Java.  The places are given by variables: no path is ever part of a command.
The machine takes SIGUSR2 for itself, and dies of one that others send, unless it is given another
signal; here SIGUSR2 has to be ignored (worker protocol)."""
GET = "install Go 1.26 or later, or Java 17 with Maven, from your distribution or their makers"


def missing(library: Library) -> str | None:
    """Why this library's worker cannot be built here, with the fix; None if it can."""
    absent = [name for name in NEEDS[library.language] if shutil.which(name) is None]
    if not absent:
        return None
    return (
        f"library {library.name!r} is written in {library.language.title()} and there is no "
        f"{' and no '.join(absent)} on PATH; {GET}"
    )


def clock_refused(library: Library) -> str | None:
    """Why the wall clock of this library's worker cannot be changed; None if it can."""
    if library.language == "go":
        return (
            f"library {library.name!r} is written in Go, whose programs ask the kernel for the "
            "time without libc, where the clock shim sits; skew the server's clock, or use a "
            "library in another language"
        )
    return None


def place_of(library: Library, cache: Path, pins: Sequence[Pin] = ()) -> Path:
    """Where the build of this library lives."""
    digest = hashlib.sha256()
    for path in _sources(library):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    compiler = {"go": ["go", "version"], "java": ["javac", "-version"]}[library.language]
    digest.update(_run(compiler, Path.cwd(), {}).encode())
    digest.update(SCRIPT.encode() if library.language == "java" else b"")
    for pin in pins:
        digest.update(f"{pin.name}@{pin.version}\0".encode())
    return cache / f"{library.name}-{digest.hexdigest()[:16]}"


def is_ready(place: Path) -> bool:
    return (place / READY).exists() and (place / PROGRAM).exists()


def build(library: Library, place: Path, tell: Progress, pins: Sequence[Pin] = ()) -> None:
    """Builds the worker in ``place``; the caller holds its lock.  HarnessError with the last words
    of the compiler if that fails; UserError if it is for the versions that were chosen."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    what = " with " + ", ".join(f"{pin.name} {pin.version}" for pin in pins) if pins else ""
    tell(f"{library.name}: building its worker{what} in {place} (once; this can take minutes)")
    try:
        {"go": _build_go, "java": _build_java}[library.language](library, place, pins)
    except (OSError, subprocess.SubprocessError) as error:
        raise HarnessError(
            f"cannot build the worker of library {library.name!r} in {place}: {error}"
        ) from error
    except HarnessError as error:
        shutil.rmtree(place, ignore_errors=True)
        if not pins:
            raise
        raise UserError(
            f"the worker of library {library.name!r} cannot be built{what}: {error}\n"
            "Name versions that exist, go together and have what the worker calls "
            f"({pinned.EXAMPLES[library.language]})"
        ) from error
    (place / READY).touch()
    tell(f"{library.name}: ready")


def refuse(library: Library) -> None:
    """RefusedError if the worker cannot be built here."""
    reason = missing(library)
    if reason:
        raise RefusedError(reason)


def packages(library: Library, program: Path) -> dict[str, str]:
    """Versions that a built worker holds: modules of a Go program, jars beside a Java one."""
    found = {}
    if library.language == "go":
        for line in _run(["go", "version", "-m", str(program)], Path.cwd(), {}).splitlines():
            words = line.split()
            if len(words) > 2 and words[0] == "dep":
                found[words[1]] = words[2]
        return found
    for jar in sorted((program.parent / "jars").glob("*.jar")):
        name, _, version = jar.stem.rpartition("-")
        found[name or version] = version
    return found


def _sources(library: Library) -> Iterator[Path]:
    """What a build depends on: in Java the library's own folder and the one that all share."""
    root = library.requirements.parent
    endings = {".go", ".mod", ".sum", ".java", ".xml", ".sha256"}
    roots = [root] if library.language == "go" else [root, root.parent / "src"]
    for one in roots:
        yield from sorted(path for path in one.rglob("*") if path.suffix in endings)


def _build_go(library: Library, place: Path, pins: Sequence[Pin]) -> None:
    root = library.requirements.parent
    package = "./" + library.adapter.parent.relative_to(root).as_posix()
    changes = {"CGO_ENABLED": "0", "GOWORK": "off"}
    mode = "-mod=readonly"
    if pins:
        shutil.copytree(root, place / "source")
        root, mode = place / "source", "-mod=mod"
        _run(["go", "get", *(f"{pin.name}@{pin.version}" for pin in pins)], root, changes)
    argv = ["go", "build", "-trimpath", mode, "-o", str(place / PROGRAM), package]
    _run(argv, root, changes)


def _build_java(library: Library, place: Path, pins: Sequence[Pin]) -> None:
    root, classes = library.requirements.parent, place / "classes"
    pom, digests = root / "pom.xml", library.requirements
    if pins:
        pom = place / "pom.xml"
        pom.write_text(pinned.pom((root / "pom.xml").read_text(), pins))
    jars.fetch(pom, None if pins else digests, place / "jars", timeout_s=BUILD_TIMEOUT_S)
    sources = [str(path) for path in _sources(library) if path.suffix == ".java"]
    classes.mkdir()
    quiet = ["-nowarn", "-XDignore.symbol.file"]  # sun.misc.Signal is what there is for signals
    _run(["javac", *quiet, "-cp", f"{place / 'jars'}/*", "-d", str(classes), *sources], root, {})
    script = place / PROGRAM
    script.write_text(SCRIPT.replace("MAIN", library.adapter.stem))
    script.chmod(0o755)


def _run(argv: list[str], cwd: Path, changes: Mapping[str, str]) -> str:
    """stdout of a command; HarnessError with its last words if it fails."""
    return built(argv, cwd=cwd, env={**os.environ, **changes}, timeout_s=BUILD_TIMEOUT_S)
