"""An own Python environment for each lock library, made once and kept in the user's cache.

    python -m clients.environments redis-py            # makes it, prints the interpreter's path
    ensure(LIBRARIES.load("redis-py"), progress=print) # the same from code
    ensure(LIBRARIES.load("redis-py"), chosen=["redis==5.0.0"])    # with versions of one's own

Libraries exclude each other by their pins, and what is tested must be what a user would install,
so none of them lives in the harness' environment.  The place is
``$XDG_CACHE_HOME/lockhavoc/envs/<requirements>-<digest>``, the digest being over what is installed
(the hash-locked file, or what the user chose) and the base interpreter: other requirements or
another Python are another environment.

Versions that a user chose are resolved when the environment is made; what they leave open stays as
in the locked file where that fits (uv only; pip takes the newest).  Hashes are checked for the
locked files alone.

Traps.  A virtual environment cannot be moved, so it is built in its final place under a file
lock, and counts only once the file ``.ready`` is in it: what a killed build left behind is
removed and built anew.  The path of the interpreter must not be resolved: it is a symlink, and
its target is the base interpreter without the library.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from clients import pinned, toolchains
from clients.libraries import Library
from clients.registry import LIBRARIES
from harness.core.cache import alone, cache_folder
from harness.core.commands import finished
from harness.core.errors import HarnessError, LockhavocError, UserError

Progress = Callable[[str], None]

READY = ".ready"
INSTALL_TIMEOUT_S = 600.0  # a source build with a cold cache on a slow line
PROBE_TIMEOUT_S = 60.0  # imports of a large library on a busy machine
LINES_SHOWN = 12  # of the installer's output in an error message
# Variables that would bring the harness' modules into a library's interpreter.
LEAKS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
# What uv and pip say if there is nothing that could be installed, on whatever machine.
NO_SUCH = ("No solution found", "No matching distribution found", "ResolutionImpossible")
LOCK = "requirements.txt"  # of an environment with chosen versions: what was resolved


class Contents(NamedTuple):
    """What goes into an environment.  chosen: requirements that a user gave, to be resolved; none:
    the hash-locked file as it is.  digest: of all that is installed and not named in them."""

    library: Library
    chosen: tuple[str, ...] = ()
    digest: str = ""


def cache_dir() -> Path:
    """Where environments are kept: ``$XDG_CACHE_HOME/lockhavoc/envs`` (default ~/.cache)."""
    return cache_folder("envs")


def ensure(
    library: Library,
    *,
    python: str | Path | None = None,
    chosen: Sequence[str] = (),
    digest: str = "",
    progress: Progress | None = None,
) -> Path:
    """Path of an interpreter that can import ``library``; makes its environment if needed.

    python: an interpreter that the user names (``client.python``), used as it is after a check;
    UserError if it cannot import the library.  chosen: requirements (PEP 508) that replace the
    hash-locked ones; UserError if there are no such versions.  digest: of files named in them.
    HarnessError if the installation fails.
    """
    tell = progress or _silent
    if library.language != "python":
        if python is not None:
            raise UserError(
                f"client.python is given, but library {library.name!r} is written in "
                f"{library.language.title()} and needs no interpreter; leave it out"
            )
        return _program(library, pinned.pins(library, chosen), tell)
    if python is not None:
        return _named(library, Path(python))
    contents = Contents(library, tuple(chosen), digest)
    place = _place(contents)
    interpreter = place / "bin" / "python"
    if _is_ready(place):
        return interpreter
    with _alone(place, tell, library.name):
        if _is_ready(place):
            return interpreter  # another process was faster
        _build(contents, place, tell)
    return interpreter


def _program(library: Library, pins: Sequence[pinned.Pin], tell: Progress) -> Path:
    """The worker's program of a library in another language; RefusedError without its tools."""
    toolchains.refuse(library)
    place = toolchains.place_of(library, cache_dir(), pins)
    if not toolchains.is_ready(place):
        with _alone(place, tell, library.name):
            if not toolchains.is_ready(place):
                toolchains.build(library, place, tell, pins)
    return place / toolchains.PROGRAM


def packages(python: Path) -> dict[str, str]:
    """Distributions that an interpreter finds, name -> version; HarnessError if it cannot say."""
    code = (
        "import json, importlib.metadata as m\n"
        "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions()}))"
    )
    try:
        done = _run([str(python), "-c", code], PROBE_TIMEOUT_S)
        found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{python} cannot say what is installed there: {error}") from error
    return dict(sorted((str(name), str(version)) for name, version in found.items()))


def clean(variables: Mapping[str, str]) -> dict[str, str]:
    """An environment without what would leak the harness' own modules into a library's."""
    return {name: value for name, value in variables.items() if name not in LEAKS}


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


def _place(contents: Contents) -> Path:
    library, chosen, more = contents
    digest = hashlib.sha256(library.requirements.read_bytes())
    base = [sys.implementation.cache_tag, sys.version, sys.base_prefix, os.uname().machine]
    digest.update(json.dumps([*base, list(chosen), more] if chosen else base).encode())
    return cache_dir() / f"{library.requirements.stem}-{digest.hexdigest()[:16]}"


def _is_ready(place: Path) -> bool:
    # The interpreter is a symlink; it dangles if the base interpreter was removed meanwhile.
    return (place / READY).exists() and (place / "bin" / "python").exists()


def _alone(place: Path, tell: Progress, name: str) -> AbstractContextManager[None]:
    """While the block runs nobody else makes this environment."""
    wait = partial(tell, f"{name}: another process is making the environment; waiting for it")
    return alone(place.with_name(place.name + ".lock"), wait)


def _build(contents: Contents, place: Path, tell: Progress) -> None:
    library, chosen, _ = contents
    if place.exists():
        tell(f"{library.name}: removing the half-made environment {place}")
        shutil.rmtree(place)
    what = ", ".join(chosen) if chosen else library.requirements.name
    tell(f"{library.name}: installing {what} into {place}")
    uv = shutil.which("uv")
    failure = _install(contents, place, uv)
    if failure and uv and not (chosen and NO_SUCH[0] in failure):
        tell(f"{library.name}: uv failed ({failure.splitlines()[-1]}); trying pip")
        shutil.rmtree(place, ignore_errors=True)
        failure = _install(contents, place, None)
    if chosen and any(words in failure for words in NO_SUCH):
        shutil.rmtree(place, ignore_errors=True)
        raise UserError(
            f"there is no way to install {what} for library {library.name!r} under Python "
            f"{sys.version.split()[0]}:\n{failure}\nName versions that exist and go together"
        )
    if not failure:
        failure = _cannot_import(place / "bin" / "python", library)
    if failure:
        again = f" with `python -m clients.environments {library.name}`" if not chosen else ""
        raise HarnessError(
            f"cannot make the environment of library {library.name!r} in {place}:\n{failure}\n"
            f"Fix what it says (network, disk, index settings of pip) and try again{again}, or "
            f"name an interpreter that has the library as client.python"
        )
    (place / READY).write_text(f"{what}\n")
    tell(f"{library.name}: ready")


def _install(contents: Contents, place: Path, uv: str | None) -> str:
    """Makes the venv and installs into it; returns "" or why it failed."""
    python = str(place / "bin" / "python")
    if uv is not None:
        venv = [uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(place)]
        install = [uv, "pip", "install", "--quiet", "--python", python]
    else:
        venv = [sys.executable, "-m", "venv", str(place)]
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    failure = _step(venv)
    if failure:
        return failure
    locked = contents.library.requirements
    if not contents.chosen:
        return _step([*install, "--require-hashes", "--requirement", str(locked)])
    wanted = place / "wanted.in"
    wanted.write_text("".join(f"{line}\n" for line in contents.chosen))
    if uv is None:
        return _step([*install, "--requirement", str(wanted)])
    # uv keeps the versions of a file that it is to overwrite, as far as they fit.
    shutil.copyfile(locked, place / LOCK)
    resolve = [uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python", python]
    output = ["--output-file", str(place / LOCK)]
    return _step([*resolve, *output, str(wanted)]) or _step(
        [*install, "--requirement", str(place / LOCK)]
    )


def _step(argv: list[str]) -> str:
    """Runs one step of an installation; returns "" or the last lines that it said."""
    try:
        done = _run(argv, INSTALL_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"  {argv[0]}: {error}"
    if done.returncode == 0:
        return ""
    lines = [f"  {line}" for line in done.stdout.strip().splitlines()[-LINES_SHOWN:]]
    return "\n".join([f"  exit status {done.returncode} of {' '.join(argv[:4])}:", *lines])


def _run(argv: list[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    return finished(argv, timeout_s=timeout_s, env=clean(os.environ))


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
