"""Checkers by name.  A new one: one file beside this, one line here, its test.

    result = CHECKERS.load("lease")().check(history, context)

Safety: lease (was the lock granted rightly), exclusion (who believed to hold), belief (how long in
a lock that was gone), honesty (was ok answered to somebody else's release), fencing and effects
(was data harmed).  Apart from safety: liveness, availability (while faults last), recovery (of a
dead holder's lock), orphans (entries left behind), deadlock, errors (told apart), fairness.  About
the run itself: vacuity, stats, exceptions.
"""

from __future__ import annotations

from harness.core.registry import Registry

CHECKERS = Registry(
    "checker",
    {
        "availability": "checkers.availability:Availability",
        "belief": "checkers.belief:Belief",
        "deadlock": "checkers.deadlock:Deadlock",
        "effects": "checkers.effects:Effects",
        "errors": "checkers.errors:Errors",
        "exceptions": "checkers.exceptions:Exceptions",
        "exclusion": "checkers.exclusion:Exclusion",
        "fairness": "checkers.fairness:Fairness",
        "fencing": "checkers.fencing:Fencing",
        "honesty": "checkers.honesty:Honesty",
        "lease": "checkers.lease:Lease",
        "liveness": "checkers.liveness:Liveness",
        "orphans": "checkers.orphans:Orphans",
        "recovery": "checkers.recovery:Recovery",
        "stats": "checkers.stats:Stats",
        "vacuity": "checkers.vacuity:Vacuity",
    },
)
