"""Builds the clock shim with the system's C compiler, once, into the user's cache.

    why_not()          # None, or "no C compiler ... apt-get install gcc"
    ensure()           # Path of clockshim-3fa1c2d4e5f6.so

The name carries a hash of the source, so a changed source makes a new file and an old one stays
for who still runs it.  The file appears complete or not at all.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.core.cache import cache_folder
from harness.core.errors import HarnessError, RefusedError

SOURCE = Path(__file__).with_name("clockshim.c")
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-O2", "-Wall", "-Wextra", "-std=gnu11", "-shared", "-fPIC")
_TIMEOUT_S = 60.0


def path() -> Path:
    """Where the shim of this source is, or will be."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    return cache_folder("lib") / f"clockshim-{digest}.so"


def compiler() -> str | None:
    """The C compiler to use ($CC wins), or None."""
    wanted = [os.environ["CC"]] if os.environ.get("CC") else COMPILERS
    return next((found for name in wanted if (found := shutil.which(name))), None)


def why_not() -> str | None:
    """None if the shim is there or can be built, else the reason and the fix."""
    if not sys.platform.startswith("linux"):
        return f"the clock shim is for Linux and this is {sys.platform}; use the docker runtime"
    if path().exists() or compiler():
        return None
    return (
        f"the clock shim has to be built and there is no C compiler ({', '.join(COMPILERS)}); "
        "install one: apt-get install gcc libc6-dev"
    )


def ensure() -> Path:
    """Builds the shim unless it is there; RefusedError without a compiler, HarnessError if the
    build fails."""
    built = path()
    if built.exists():
        return built
    reason = why_not()
    if reason:
        raise RefusedError(reason)
    built.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=built.parent) as folder:
        made = Path(folder) / built.name
        argv = [str(compiler()), *FLAGS, "-o", str(made), str(SOURCE)]
        try:
            done = subprocess.run(
                argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HarnessError(f"clock shim: {' '.join(argv)}: {error}") from error
        if done.returncode != 0:
            raise HarnessError(f"clock shim: {' '.join(argv)} failed:\n{done.stderr.strip()}")
        made.replace(built)
    return built
