"""The cache of this user, where what had to be made or fetched once is kept.

folder = cache_folder("bin")                 # .../lockhavoc/bin, from $XDG_CACHE_HOME or ~/.cache
with alone(folder, "builds toxiproxy-server"):
    ...                                      # no other process is in here
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path


def cache_folder(name: str) -> Path:
    """Where things of this kind are kept; it need not be there yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lockhavoc" / name


@contextlib.contextmanager
def alone(folder: Path, does: str) -> Iterator[None]:
    """Makes the folder; inside, whoever wants the same waits, and says so on stderr."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "build.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process {does}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(line: str) -> None:
    """A line on stderr: stdout may be a report for a machine."""
    print(f"lockhavoc: {line}", file=sys.stderr, flush=True)  # noqa: T201 - progress of a command
