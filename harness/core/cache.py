"""The cache of this user, where what had to be made or fetched once is kept.

folder = cache_folder("bin")          # .../lockhavoc/bin, from $XDG_CACHE_HOME or ~/.cache
with alone(folder / "build.lock", lambda: say("another process builds it; waiting")):
    ...                               # no other process is in here
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path


def cache_folder(name: str) -> Path:
    """Where things of this kind are kept; it need not be there yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lockhavoc" / name


@contextlib.contextmanager
def alone(lock: Path, must_wait: Callable[[], None]) -> Iterator[None]:
    """Makes the folder of the file ``lock`` and holds that file while the block runs; ``must_wait``
    is called if another process has it."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            must_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
