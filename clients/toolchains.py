"""Workers in compiled languages: built from source when they are asked for, kept in the cache.

    program(LIBRARIES.load("go-redsync"), progress=print)     # path of the worker's program

What an environment is for a library in Python, a build is for the others: the library comes from
its own registry, in the versions and with the checksums that lie beside the source, and what was
built once is used again.  The place is ``.../lockhavoc/envs/<name>-<digest>``, the digest being
over the sources and the compiler's version.

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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from clients.libraries import Library
from harness.core import jars
from harness.core.errors import HarnessError, RefusedError

Progress = Callable[[str], None]

BUILD_TIMEOUT_S = 900.0  # gRPC from source takes two minutes of processor time
LINES_SHOWN = 12
READY = ".ready"
PROGRAM = "worker"
NEEDS = {"go": ("go",), "java": ("java", "javac", "mvn")}
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


def place_of(library: Library, cache: Path) -> Path:
    """Where the build of this library lives."""
    digest = hashlib.sha256()
    for path in _sources(library):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    compiler = {"go": ["go", "version"], "java": ["javac", "-version"]}[library.language]
    digest.update(_run(compiler, Path.cwd(), {}).encode())
    return cache / f"{library.name}-{digest.hexdigest()[:16]}"


def is_ready(place: Path) -> bool:
    return (place / READY).exists() and (place / PROGRAM).exists()


def build(library: Library, place: Path, tell: Progress) -> None:
    """Builds the worker in ``place``; the caller holds its lock.  HarnessError with the last words
    of the compiler if that fails."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    tell(f"{library.name}: building its worker in {place} (once; this can take minutes)")
    try:
        {"go": _build_go, "java": _build_java}[library.language](library, place)
    except (OSError, subprocess.SubprocessError) as error:
        raise HarnessError(
            f"cannot build the worker of library {library.name!r} in {place}: {error}"
        ) from error
    (place / READY).touch()
    tell(f"{library.name}: ready")


def refuse(library: Library) -> None:
    """RefusedError if the worker cannot be built here."""
    reason = missing(library)
    if reason:
        raise RefusedError(reason)


def packages(library: Library) -> dict[str, str]:
    """Versions that the build takes, as its lock file names them."""
    found = {}
    for line in library.requirements.read_text().splitlines():
        words = line.split()
        if library.language == "go" and len(words) == 3 and not words[1].endswith("/go.mod"):
            found[words[0]] = words[1]
        elif library.language == "java" and len(words) == 2:
            name, _, version = words[1].removesuffix(".jar").rpartition("-")
            found[name or version] = version
    return found


def _sources(library: Library) -> Iterator[Path]:
    root = library.requirements.parent
    endings = {".go", ".mod", ".sum", ".java", ".xml", ".sha256"}
    yield from sorted(path for path in root.rglob("*") if path.suffix in endings)


def _build_go(library: Library, place: Path) -> None:
    root = library.requirements.parent
    package = "./" + library.adapter.parent.relative_to(root).as_posix()
    argv = ["go", "build", "-trimpath", "-mod=readonly", "-o", str(place / PROGRAM), package]
    _run(argv, root, {"CGO_ENABLED": "0", "GOWORK": "off"})


def _build_java(library: Library, place: Path) -> None:
    root, classes = library.requirements.parent, place / "classes"
    jars.fetch(root / "pom.xml", library.requirements, place / "jars", timeout_s=BUILD_TIMEOUT_S)
    sources = [str(path) for path in sorted((root / "src").glob("*.java"))]
    classes.mkdir()
    _run(["javac", "-nowarn", "-cp", f"{place / 'jars'}/*", "-d", str(classes), *sources], root, {})
    script = place / PROGRAM
    flags = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx256m -XX:-UsePerfData"
    # The places are given by variables: no path is ever part of a command.
    script.write_text(
        '#!/bin/sh\nhere=$(dirname "$0")\n'
        f'exec java {flags} -cp "$here/classes:$here/jars/*" {library.adapter.stem} "$@"\n'
    )
    script.chmod(0o755)


def _run(argv: list[str], cwd: Path, changes: Mapping[str, str]) -> str:
    """stdout of a command; HarnessError with its last words if it fails."""
    done = subprocess.run(
        argv,
        cwd=cwd,
        env={**os.environ, **changes},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        said = "\n".join(f"  {line}" for line in done.stdout.strip().splitlines()[-LINES_SHOWN:])
        raise HarnessError(
            f"exit status {done.returncode} of {' '.join(argv[:4])}:\n{said}\n"
            "Fix what it says (network, proxy settings of the tool, disk) and try again"
        )
    return done.stdout
