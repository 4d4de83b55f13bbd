"""An own Python environment for each lock library, made once and kept in the user's cache.

    python -m clients.environments redis-py            # makes it, prints the interpreter's path
    ensure(LIBRARIES.load("redis-py"), progress=print) # the same from code

Libraries exclude each other by their pins, and what is tested must be what a user would install,
so none of them lives in the harness' environment.  The place is
``$XDG_CACHE_HOME/lockhavoc/envs/<requirements>-<digest>``, the digest being over the hash-locked
requirements file and the base interpreter: another file or another Python is another environment.

Traps.  A virtual environment cannot be moved, so it is built in its final place under a file
lock, and counts only once the file ``.ready`` is in it: what a killed build left behind is
removed and built anew.  The path of the interpreter must not be resolved: it is a symlink, and
its target is the base interpreter without the library.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from clients.libraries import Library
from clients.registry import LIBRARIES
from harness.core.errors import HarnessError, LockhavocError, UserError

Progress = Callable[[str], None]

READY = ".ready"
INSTALL_TIMEOUT_S = 600.0  # a source build with a cold cache on a slow line
PROBE_TIMEOUT_S = 60.0  # imports of a large library on a busy machine
LINES_SHOWN = 12  # of the installer's output in an error message


def cache_dir() -> Path:
    """Where environments are kept: ``$XDG_CACHE_HOME/lockhavoc/envs`` (default ~/.cache)."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "lockhavoc" / "envs"


def ensure(
    library: Library,
    *,
    python: str | Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Path of an interpreter that can import ``library``; makes its environment if needed.

    python: an interpreter that the user names (``client.python``), used as it is after a check;
    UserError if it cannot import the library.  HarnessError if the installation fails.
    """
    tell = progress or _silent
    if python is not None:
        return _named(library, Path(python))
    place = _place(library)
    interpreter = place / "bin" / "python"
    if _is_ready(place):
        return interpreter
    place.parent.mkdir(parents=True, exist_ok=True)
    with _locked(place.with_name(place.name + ".lock"), tell, library.name):
        if _is_ready(place):
            return interpreter  # another process was faster
        _build(library, place, tell)
    return interpreter


def _named(library: Library, python: Path) -> Path:
    path = Path(os.path.abspath(python))
    problem = _cannot_import(path, library)
    if problem:
        raise UserError(
            f"client.python is {str(python)!r}, which cannot run {library.name!r}: {problem}; "
            f"install it there (see {library.requirements.name}) or leave client.python out"
        )
    return path


def _cannot_import(python: Path, library: Library) -> str:
    """Why ``python`` cannot import the library's modules, "" if it can."""
    code = f"import {', '.join(library.imports)}"
    try:
        done = _run([str(python), "-c", code], PROBE_TIMEOUT_S)
    except FileNotFoundError:
        return "there is no such file"
    except OSError as error:
        return f"it cannot be executed ({error.strerror})"
    except subprocess.TimeoutExpired:
        return f"`{code}` took more than {PROBE_TIMEOUT_S:.0f} s"
    if done.returncode == 0:
        return ""
    said = done.stdout.strip().splitlines()
    return f"`{code}` fails: {said[-1] if said else f'exit status {done.returncode}'}"


def _place(library: Library) -> Path:
    digest = hashlib.sha256(library.requirements.read_bytes())
    base = [sys.implementation.cache_tag, sys.version, sys.base_prefix, os.uname().machine]
    digest.update(json.dumps(base).encode())
    return cache_dir() / f"{library.requirements.stem}-{digest.hexdigest()[:16]}"


def _is_ready(place: Path) -> bool:
    # The interpreter is a symlink; it dangles if the base interpreter was removed meanwhile.
    return (place / READY).exists() and (place / "bin" / "python").exists()


@contextlib.contextmanager
def _locked(path: Path, tell: Progress, name: str) -> Iterator[None]:
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"{name}: another process is making the environment; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(library: Library, place: Path, tell: Progress) -> None:
    if place.exists():
        tell(f"{library.name}: removing the half-made environment {place}")
        shutil.rmtree(place)
    tell(f"{library.name}: installing {library.requirements.name} into {place}")
    uv = shutil.which("uv")
    failure = _install(library, place, uv)
    if failure and uv:
        tell(f"{library.name}: uv failed ({failure.splitlines()[-1]}); trying pip")
        shutil.rmtree(place, ignore_errors=True)
        failure = _install(library, place, None)
    if not failure:
        failure = _cannot_import(place / "bin" / "python", library)
    if failure:
        raise HarnessError(
            f"cannot make the environment of library {library.name!r} in {place}:\n{failure}\n"
            f"Fix what it says (network, disk, index settings of pip) and try again with "
            f"`python -m clients.environments {library.name}`, or name an interpreter that has "
            f"the library as client.python"
        )
    (place / READY).write_text(f"{library.requirements.name}\n")
    tell(f"{library.name}: ready")


def _install(library: Library, place: Path, uv: str | None) -> str:
    """Makes the venv and installs the locked file; returns "" or why it failed."""
    requirements, python = str(library.requirements), str(place / "bin" / "python")
    if uv is not None:
        steps = [
            [uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(place)],
            [uv, "pip", "install", "--quiet", "--python", python],
        ]
    else:
        steps = [
            [sys.executable, "-m", "venv", str(place)],
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"],
        ]
    steps[1] += ["--require-hashes", "--requirement", requirements]
    for argv in steps:
        try:
            done = _run(argv, INSTALL_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"  {argv[0]}: {error}"
        if done.returncode != 0:
            lines = [f"  {line}" for line in done.stdout.strip().splitlines()[-LINES_SHOWN:]]
            return "\n".join([f"  exit status {done.returncode} of {' '.join(argv[:4])}:", *lines])
    return ""


def _run(argv: list[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    # A PYTHONPATH or an active venv of the harness must not leak into the library's environment.
    keep = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=keep,
        timeout=timeout_s,
        check=False,
    )


def _silent(text: str) -> None:
    pass


def main() -> int:
    """Makes the environments of the named libraries (all without names); prints interpreters."""
    parser = argparse.ArgumentParser(prog="python -m clients.environments")
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help="default: all registered")
    names = parser.parse_args().libraries or LIBRARIES.names()
    try:
        for name in names:
            library = LIBRARIES.load(name)
            python = ensure(library, progress=lambda text: _print(sys.stderr.fileno(), text))
            _print(sys.stdout.fileno(), f"{name} {python}")
    except LockhavocError as error:
        _print(sys.stderr.fileno(), str(error))
        return error.exit_code
    return 0


def _print(fd: int, text: str) -> None:
    os.write(fd, (text + "\n").encode())


if __name__ == "__main__":
    sys.exit(main())
