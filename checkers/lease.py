"""lease: did the *service* grant the lock rightly?  (P1 of the three properties.)

With a TTL: nobody may be granted the lock before the former hold was released or its TTL was over.
Without: not before it was released.  A lock that ends with its session is surely held only up to
the last answer that it still was (``view.unasked_ends``).  If grants carry fencing tokens, those
must grow.  Semaphores (``context.k`` > 1) and read/write locks are judged by their own monitors.

    double-grant, early-takeover, no-free-instant     two holders at a time
    lost-lock                                         told "not held" while surely held
    confirmed-after-its-end, confirmed-without-grant  release or renew answered ok wrongly
    token-inversion, token-duplicate, token-mismatch, grant-without-token, no-token-left

Trap: a client that outlives its lease is no fault of the service; ``exclusion`` judges that.
"""

from __future__ import annotations

from typing import Any

from checkers.fallback import settle
from checkers.monitors import lease, mutex, rwlock, semaphore
from checkers.monitors.span import INF, Span, Verdict
from checkers.view import View
from harness.core.history import History
from harness.core.protocols import CheckContext
from harness.core.result import Result, Valid


class Lease:
    """Service safety under leases."""

    name = "lease"
    safety = True

    def check(self, history: History, context: CheckContext) -> Result:
        view = View(history, context)
        granted = [span for span in view.grants if span.ok]
        if not granted:
            return Result(
                checker=self.name,
                valid=Valid.UNKNOWN,
                says="no lock was ever granted, so nothing about its grants was shown",
            )
        verdict, what = self._judge(view, granted)
        stats: dict[str, Any] = {
            "grants": len(granted),
            "keys": verdict.keys,
            "violations": verdict.count,
            "exact": verdict.exact,
            "why": verdict.why or "all assumptions hold",
            **verdict.stats,
        }
        plain = view.leased and not context.drift_ppm and not view.sharing.shared
        if plain and verdict.valid is Valid.TRUE:
            strict = lease.check(
                history.intervals(), ttl_ns=view.ttl_ns, property=lease.EXACT, fenced=False
            )
            stats["ends_exactly_at_ttl"] = str(strict.valid)
        says = verdict.says
        if verdict.valid is Valid.TRUE:
            says = f"{len(granted)} grants, each {what}"
        return Result(
            checker=self.name,
            valid=verdict.valid,
            says=says,
            anomalies=verdict.anomalies,
            stats=stats,
        )

    def _judge(self, view: View, granted: list[Span]) -> tuple[Verdict, str]:
        ops = view.ops
        if view.sharing.shared:
            return self._judge_shared(view)
        fenced = any(span.token is not None for span in granted)
        tokens = ", with a greater token" if fenced else ""
        if view.leased:
            drift = view.context.drift_ppm
            verdict = lease.check(ops, ttl_ns=view.ttl_ns, drift_ppm=drift, fenced=fenced)
            options = {"ttl_ns": view.ttl_ns, "drift_ppm": drift}
            verdict = settle(verdict, ops, "lease", options)
            return verdict, f"after the former hold was released or its TTL over{tokens}"
        found = mutex.check_fenced(ops) if fenced else mutex.check(ops)
        verdict = settle(found, ops, "fenced" if fenced else "mutex", {})
        ended = " or may have ended with its " + view.context.lease_kind if view.bound else ""
        return verdict, f"after the former hold was released{ended}{tokens}"

    def _judge_shared(self, view: View) -> tuple[Verdict, str]:
        """Permits, readers and writers, each to the end of its lease at the latest."""
        ttl_ns = None
        if view.leased:
            ttl_ns = INF if view.ttl_ns is None else view.ttl_ns
        ops = view.sharing.ended(view.ops, ttl_ns=ttl_ns, drift_ppm=view.context.drift_ppm)
        k = view.sharing.k
        if k > 1:
            verdict = settle(semaphore.check(ops, k=k), ops, "semaphore", {"k": k})
            return verdict, f"with one of the {k} permits free"
        return settle(rwlock.check(ops), ops, "rwlock", {}), "compatible with the holders"
