"""What the tests of this room share: a real ledger in a run folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.core.clock import MonotonicClock
from harness.ledger import FileLedger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[FileLedger]:
    """A ledger in ``tmp_path``; at the end nothing may be left open in it."""
    made = FileLedger(tmp_path, MonotonicClock())
    yield made
    left = {number: why for number, (why, _) in made.open.items()}
    failures = made.keep_all()
    made.close()
    assert not failures
    assert not left, f"promises neither kept nor given up: {left}"
