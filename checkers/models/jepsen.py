"""Knossos' anonymous mutex, for comparison only: it knows no owners, so it misses double grants.

    acquire: free -> held;   release: held -> free, whoever asks

``tests/data/mutex-double-grant-jepsen-misses.invalid.jsonl`` shows what that costs.  Two clients
hold at once; a release of unknown outcome *of a third client, which never held*, may then have
happened between the two grants, and this model is satisfied.  The owner-aware model is not.

Trap: do not use it to judge a lock.  It answers "linearizable" to most violating histories as soon
as they have a few releases of unknown outcome.
"""

from __future__ import annotations

from typing import Any

from checkers.models.base import ACQUIRE, LOCK_F, RELEASE, Model
from harness.core.history import Interval, Type


class JepsenMutex(Model):
    """State: whether it is held."""

    name = "jepsen-mutex"
    init: Any = False

    def prepare(self, op: Interval) -> Any:
        f = LOCK_F.get(op.invoke.f)
        return f if f in (ACQUIRE, RELEASE) and op.outcome != Type.FAIL else None

    def step(self, state: Any, op: Any) -> Any:
        acquires = op == ACQUIRE
        return acquires if state != acquires else None
