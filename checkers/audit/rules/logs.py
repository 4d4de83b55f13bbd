"""Rules about logs: what was written down that cannot be right for a lock.

    OVERLAP.findings(facts)

Traps: a log says what somebody wrote, not what the server did; a finding names both lines, so that
they can be looked at.  Silence of a log proves nothing and makes no dimension ok.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from checkers.audit.model import Dimension, Severity
from checkers.audit.rule import Facts, Hit, Rule


def _noted(what: str) -> Callable[[Facts], Iterator[Hit]]:
    def check(facts: Facts) -> Iterator[Hit]:
        for fact in facts.of("log"):
            if fact.get("what") == what:
                yield Hit(fact, str(fact.get("says")))

    return check


OVERLAP = Rule(
    id="A-LOG-1",
    kind="K09",
    dimension=Dimension.IDENTITY,
    severity=Severity.CRITICAL,
    title="logged: two holders at once",
    interleaving=("A takes the lock", "B takes it too", "A goes on and gives it back later"),
    fixes={"": "find out which lease or check let B in; fence the writes meanwhile"},
    check=_noted("overlap"),
    also=(Dimension.LEASE,),
)
AFTER_LOSS = Rule(
    id="A-LOG-2",
    kind="K08",
    dimension=Dimension.LEASE,
    severity=Severity.HIGH,
    title="logged: work after the lease was over or the lock was lost",
    interleaving=("A's lease ends (or A is told that it lost the lock)", "A works on"),
    fixes={"": "stop the work when the lease can be over; renew earlier, or make the lease longer"},
    check=_noted("after"),
    also=(Dimension.FENCING,),
)
STUCK = Rule(
    id="A-LOG-3",
    kind="K18",
    dimension=Dimension.RECOVERY,
    severity=Severity.HIGH,
    title="logged: a lock that was never given back while others asked for it",
    interleaving=("A takes the lock and is not heard of again", "B is refused, again and again"),
    fixes={"": "give the lock a lease, and look what became of its holder"},
    check=_noted("stuck"),
)
IN_STEP = Rule(
    id="A-LOG-4",
    kind="K22",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.MEDIUM,
    title="logged: retries at one constant step",
    interleaving=("A holds the lock", "all waiters ask in step, and are refused in step"),
    fixes={"": "waits that grow, with chance in them and a cap (lockhavoc retry)"},
    check=_noted("sync"),
)
FOREIGN_RELEASE = Rule(
    id="A-LOG-5",
    kind="K01",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.CRITICAL,
    title="logged: a lock was released by somebody who did not have it",
    interleaving=("A has the lock", "B, who has none, releases it", "C gets in beside A"),
    fixes={"": "release by one step that compares the owner; and log what the release answered"},
    check=_noted("foreign"),
    also=(Dimension.IDENTITY,),
)
RENEWAL_GAP = Rule(
    id="A-LOG-6",
    kind="K07",
    dimension=Dimension.LEASE,
    severity=Severity.HIGH,
    title="logged: a renewal later than the lease it renews",
    interleaving=("A takes the lock", "the lease ends before A renews", "B could have been in"),
    fixes={"": "renew every third of the lease, from a thread that the work cannot hold up"},
    check=_noted("gap"),
)
CLOCK_BACK = Rule(
    id="A-LOG-7",
    kind="K10",
    dimension=Dimension.LEASE,
    severity=Severity.MEDIUM,
    title="logged: time went back",
    interleaving=("A computes the end of its lease", "the clock is set back", "A believes on"),
    fixes={"": "slew the clock instead of stepping it, and judge leases on a monotonic clock"},
    check=_noted("back"),
)
LEADER_CHANGES = Rule(
    id="A-LOG-8",
    kind="K22",
    dimension=Dimension.RECOVERY,
    severity=Severity.MEDIUM,
    title="logged: the leader changes again and again",
    interleaving=("the leader loses its lease under load", "the next one starts, and loses it too"),
    fixes={"": "a longer lease, renewals with room, and less work at the start of a leader"},
    check=_noted("changes"),
)
