"""Rules about what was seen: a run or a history in which a checker found a violation.

    GRANTED_TWICE.findings(facts)

One rule per checker, so that a violation has the same form as a finding in code: dimension, place
(the lines of the history), the events that prove it, and the command that shows it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from checkers.audit.model import Dimension, Severity
from checkers.audit.rule import Facts, Hit, Rule


def _seen(*checkers: str) -> Callable[[Facts], Iterator[Hit]]:
    def check(facts: Facts) -> Iterator[Hit]:
        for fact in facts.of("anomaly"):
            if str(fact.get("checker")).partition("/")[0] in checkers:
                what = f"{fact.get('what')}: " if fact.get("what") else ""
                yield Hit(
                    fact,
                    f"{what}{fact.get('says')}",
                    steps=fact.get("steps", ()),
                    replay=fact.get("replay", ""),
                )

    return check


GRANTED_TWICE = Rule(
    id="A-RUN-1",
    kind="K09",
    dimension=Dimension.IDENTITY,
    severity=Severity.CRITICAL,
    title="seen: one lock was granted to two at once",
    interleaving=("A is granted the lock", "B is granted it before A's hold is over"),
    fixes={
        "": "the service or the protocol is at fault: see the events, and the rules of K09, K12"
    },
    check=_seen("lease", "mutex", "fenced", "reentrant", "semaphore", "rwlock", "jepsen-mutex"),
    also=(Dimension.LEASE,),
)
BELIEVED_TWICE = Rule(
    id="A-RUN-2",
    kind="K08",
    dimension=Dimension.LEASE,
    severity=Severity.HIGH,
    title="seen: two clients believed to hold one lock",
    interleaving=("A's lease ends without A knowing", "B is granted the lock", "both are inside"),
    fixes={
        "": "stop the work at the latest moment at which the lease can end, and fence the writes"
    },
    check=_seen("exclusion", "belief"),
)
STALE_WRITE = Rule(
    id="A-RUN-3",
    kind="K11",
    dimension=Dimension.FENCING,
    severity=Severity.CRITICAL,
    title="seen: the resource accepted a write of an old owner",
    interleaving=("A's lease ends", "B is granted the lock and writes", "A's late write is taken"),
    fixes={"": "the resource keeps the greatest token it has seen and refuses smaller ones"},
    check=_seen("fencing", "store"),
)
HARMED = Rule(
    id="A-RUN-4",
    kind="K15",
    dimension=Dimension.FENCING,
    severity=Severity.CRITICAL,
    title="seen: an update was lost or done twice",
    interleaving=("A reads", "B reads and writes", "A writes what it made of the old state"),
    fixes={
        "": "read after the grant, commit before the release, and write with a token or version"
    },
    check=_seen("effects", "cas", "register", "kv"),
)
DISHONEST = Rule(
    id="A-RUN-5",
    kind="K01",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.CRITICAL,
    title="seen: a release or renewal was answered ok for a lock that was another's",
    interleaving=("A's lease ends; B is granted the lock", "A releases and is told ok"),
    fixes={"": "compare the owner and act in one step on the server, and answer no if it differs"},
    check=_seen("honesty"),
    also=(Dimension.IDENTITY,),
)
NO_RECOVERY = Rule(
    id="A-RUN-6",
    kind="K18",
    dimension=Dimension.RECOVERY,
    severity=Severity.HIGH,
    title="seen: nobody got the lock in time after a fault was over",
    interleaving=("a holder dies or is cut off", "the fault is over", "the bound passes; all wait"),
    fixes={"": "a lease on every entry, and waiters that also look by a timer"},
    check=_seen("liveness"),
)
UNFAIR = Rule(
    id="A-RUN-7",
    kind="K21",
    dimension=Dimension.RELEASE_RETRY,
    severity=Severity.MEDIUM,
    title="seen: a waiter was passed by for too long",
    interleaving=("A waits", "B releases and takes the lock again at once, many times"),
    fixes={"": "a queue, or random waits that grow for everybody, also for who just released"},
    check=_seen("fairness"),
)
