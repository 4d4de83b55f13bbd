"""A backend that runs for somebody other than a run: an examination, a test, a person.

    with running_backend("redis-single", "process", folder, clients=2, tell=print) as cluster: ...

Everything is promised to a ledger in ``folder`` first and taken down at the end, whatever happened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.core.clock import MonotonicClock
from harness.core.errors import RefusedError
from harness.core.protocols import Cluster, Runtime
from harness.interrupts import held_back
from harness.ledger import FileLedger
from harness.registries import RUNTIMES


@contextlib.contextmanager
def running_backend(
    backend: str, runtime: str, folder: Path, *, clients: int, tell: Callable[[str], object]
) -> Iterator[Cluster]:
    """The cluster, with as many ways in as ``clients``; RefusedError if it cannot run here."""
    live: Runtime = RUNTIMES.load(runtime)()
    reason = live.can(backend)
    if reason:
        raise RefusedError(f"backend {backend!r} cannot run here", [reason])
    tell(f"starting {backend} ({runtime})")
    ledger = FileLedger(folder, MonotonicClock())
    cluster = None
    try:
        cluster = live.up(backend, {}, workers=clients, run_dir=folder, ledger=ledger)
        yield cluster
    finally:
        with held_back():
            if cluster is not None:
                cluster.down()
            for failure in ledger.keep_all():
                tell(failure)
            ledger.close()
