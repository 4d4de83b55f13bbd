"""exceptions: which errors the clients saw, grouped, and whether the harness itself failed.

    "TimeoutError: Timeout reading from socket"  12 times, acquire, unknown outcome

UNKNOWN if the harness failed (a heal, a log copy, a teardown, a worker that died by itself): what
such a run shows is in doubt.  Errors of clients are expected under faults and judge nothing.

Trap: numbers, addresses and ids differ from one message to the next, so they are masked before
grouping; the first message is kept as it was.
"""

from __future__ import annotations

import re
from typing import Any

from checkers.models.base import LOCK_F
from checkers.view import CRASH
from harness.core.history import OBSERVATIONS, History, Type
from harness.core.limits import ANOMALIES_MAX
from harness.core.protocols import CheckContext
from harness.core.result import Anomaly, Result, Valid

_VARIABLE = re.compile(r"0x[0-9a-fA-F]+|[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*|\d+")
GROUPS_MAX = 50


class Exceptions:
    """Errors of clients and of the harness."""

    name = "exceptions"
    safety = False

    def check(self, history: History, context: CheckContext) -> Result:
        groups: dict[str, dict[str, Any]] = {}
        for op in history.intervals():
            done = op.complete
            if done is None or done.type == Type.OK:
                continue
            text = done.error or f"(no message: {done.type})"
            if text in OBSERVATIONS or op.invoke.f == CRASH:
                continue
            group = groups.setdefault(
                _VARIABLE.sub("#", text),
                {"first": text, "event": done.index, "count": 0, "by": {}},
            )
            group["count"] += 1
            what = f"{op.invoke.f} {done.type}"
            group["by"][what] = group["by"].get(what, 0) + 1
        ranked = sorted(groups.items(), key=lambda item: -item[1]["count"])
        total = sum(group["count"] for _, group in ranked)
        failures = context.failures
        says = f"{total} errors of {len(ranked)} kinds" if ranked else "no errors"
        if failures:
            says = f"the harness itself failed: {failures[0]}"
            if len(failures) > 1:
                says += f" (and {len(failures) - 1} more)"
        elif not history.intervals():
            says = "the history has no operation of a client"
        return Result(
            checker=self.name,
            valid=Valid.UNKNOWN if failures or not history.intervals() else Valid.TRUE,
            says=says,
            anomalies=[
                Anomaly(kind="harness-failure", says=text) for text in failures[:ANOMALIES_MAX]
            ],
            stats={
                "exact": True,
                "why": "counted",
                "errors": total,
                "kinds": dict(ranked[:GROUPS_MAX]),
                "lock_errors": sum(
                    count
                    for _, group in ranked
                    for what, count in group["by"].items()
                    if what.split(" ")[0] in LOCK_F
                ),
                "failures": list(failures),
            },
            safety=self.safety,
        )
