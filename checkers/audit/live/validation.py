"""What a run must have shown before it counts as the validation of a finding.

    unmet("A-ID-1", report)     # [] or what is missing, in words

The run claims that the lock holds and is as claimed; a fault that provokes this kind of failure
bit; the checkers that see this kind, and that the claim does not tolerate, say true.  What a run is
called, or what somebody says of it, counts for nothing.
"""

from __future__ import annotations

from typing import Any, Protocol

from checkers.audit.kinds import KINDS
from checkers.audit.rules.registry import RULES
from harness.core.result import Result, Valid

# Faults that bring a kind of failure out: one of them must have bitten.  Kinds that are not here
# show without any fault, by contention alone.
_LATE = (
    "worker-pause", "worker-block-loop", "worker-starve", "jam", "mute", "deafen", "blackhole",
    "sever", "latency", "partition", "node-pause",
)  # fmt: skip
_DEATH = (
    "worker-kill", "node-kill", "node-restart", "node-restart-empty", "backend-kill",
    "session-expire",
)  # fmt: skip
_CLOCK = ("clock-jump", "clock-skew", "worker-clock-jump", "worker-clock-skew")
_LOST_REPLY = ("cut-reply", "mute", "jam", "sever")
PROVOKED_BY: dict[str, tuple[str, ...]] = {
    "K01": _LATE, "K02": _LATE, "K05": _DEATH, "K07": _LATE, "K08": (*_LATE, *_DEATH),
    "K09": _LATE, "K10": _CLOCK, "K11": _LATE, "K12": (*_DEATH, "failover", "partition"),
    "K13": ("memory-pressure", "flush", "store-full", "read-only"), "K14": (*_DEATH, *_LATE),
    "K16": _LOST_REPLY, "K17": _LOST_REPLY, "K18": _DEATH, "K19": (*_LATE, *_DEATH),
    "K20": (*_LATE, *_DEATH), "K22": _DEATH,
}  # fmt: skip


class Report(Protocol):
    """What is looked at of a run; ``harness.report.document.RunReport`` is one."""

    @property
    def claim(self) -> Any: ...

    @property
    def verdict(self) -> str: ...

    @property
    def results(self) -> list[Result]: ...

    @property
    def faults(self) -> list[Any]: ...


def unmet(rule: str, report: Report) -> list[str]:
    """What keeps a run from being the validation of ``rule``; empty if nothing does."""
    kind = RULES.load(rule).kind
    found = []
    if report.claim.verdict != "holds":
        found.append(
            f"its scenario claims {report.claim.verdict!r}; claim 'holds' and run it again"
        )
    elif report.verdict != "as-claimed":
        found.append(f"its outcome is {report.verdict}")
    bit = {fault.kind for fault in report.faults if fault.bit}
    wanted = PROVOKED_BY.get(kind, ())
    if wanted and not bit & set(wanted):
        seen = ", ".join(sorted(bit)) or "none"
        found.append(f"faults that bit: {seen}; {kind} needs one of {', '.join(sorted(wanted))}")
    valid = {
        result.checker: result.valid
        for result in report.results
        if result.stats.get("applies") is not False
    }
    tolerated = set(report.claim.tolerates)
    live = [name for name in KINDS[kind].live if name not in tolerated]
    right = [name for name in live if valid.get(name) is Valid.TRUE]
    wrong = [name for name in live if valid.get(name) is Valid.FALSE]
    if wrong or (live and not right):
        said = ", ".join(f"{name} {valid.get(name, 'did not apply')}" for name in live)
        found.append(f"of the checkers that see {kind} one must say true and none false: {said}")
    return found
