"""Fast monitors: near-linear, without a search, exact under assumptions they check themselves.

    from checkers import monitors
    verdict = monitors.MONITORS["mutex"](history.intervals())
    verdict.valid, verdict.says, verdict.ops, verdict.exact

Each is a pure function ``check(intervals, **params) -> Verdict``.  ``verdict.exact`` is False where
an assumption failed (``why`` says which): ask ``checkers.engine`` then.  See ``span.Verdict``.
"""

from __future__ import annotations

from collections.abc import Callable

from checkers.monitors import belief, cas, lease, mutex, reentrant, resource, rwlock, semaphore
from checkers.monitors.span import Span, Verdict

MONITORS: dict[str, Callable[..., Verdict]] = {
    "mutex": mutex.check,
    "fenced": mutex.check_fenced,
    "reentrant": reentrant.check,
    "lease": lease.check,
    "belief": belief.check,
    "store": resource.check,
    "semaphore": semaphore.check,
    "rwlock": rwlock.check,
    "cas": cas.check,
    "register": cas.check,
}

__all__ = ["MONITORS", "Span", "Verdict"]
