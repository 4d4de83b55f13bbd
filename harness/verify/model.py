"""Words of a verification: properties, what is claimed of them, situations, and what a cell says.

A *property* is one question to a lock; each belongs to one of the five dimensions that the audit
speaks of, and is answered by checkers.  A *situation* puts a lock to the test, and its claims say
per property what its library may be held to there:

    holds    the library (with its store) promises it here: a violation is worse than claimed
    breaks   nothing is promised, and the design lets one expect that it breaks: if it holds all
             the same, that is better than claimed
    open     nothing is promised, and either is as claimed
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from harness.verify.traits import Traits

Stance = Literal["holds", "breaks", "open"]
HOLDS: Stance = "holds"
BREAKS: Stance = "breaks"
OPEN: Stance = "open"

DIMENSIONS = ("identity", "lease", "fencing", "release_retry", "recovery")


class Property(msgspec.Struct, frozen=True):
    """One question to a lock.  checkers: who answers it."""

    name: str
    says: str
    dimension: str
    checkers: tuple[str, ...]


PROPERTIES = (
    Property("grant", "the lock is granted to one client at a time", "lease", ("lease",)),
    Property("belief", "one client at a time believes that it holds", "lease", ("exclusion",)),
    Property("write", "no late or lost write is accepted", "fencing", ("fencing", "effects")),
    Property("answer", "only the owner can release or renew", "identity", ("honesty",)),
    Property(
        "progress",
        "it is granted again soon after",
        "recovery",
        ("liveness", "recovery", "orphans", "availability"),
    ),
)
NAMES = tuple(one.name for one in PROPERTIES)


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """A situation for one library on one backend: the parts of its scenario, and the claims.

    grant_ms: bound for a grant while a fault lasts (checker ``availability``); None: none is asked.
    """

    claims: Mapping[str, Stance]
    why: str
    workload: Mapping[str, Any]
    faults: tuple[Mapping[str, Any], ...] = ()
    time_ms: int = 6000
    recovery_ms: int = 6000
    grant_ms: int | None = None
    backend_options: Mapping[str, Any] = {}
    client_options: Mapping[str, Any] = {}


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table.  build: None where it does not apply (its docstring says when).

    kind: safety situations run first.  dimension: what it puts to the test, and where its progress
    counts.  quick: part of ``--quick``.  key: part of the survey.
    """

    name: str
    says: str
    kind: Literal["safety", "liveness"]
    dimension: str
    build: Callable[[Traits], Setup | None]
    quick: bool = False
    key: bool = False


def claims(
    traits: Traits, *, breaks: str = "", may: str = "", untold: str = ""
) -> dict[str, Stance]:
    """All properties hold but those named.  A token guards writes, whoever believes what.

    untold: break only where the library tells nobody of a loss; else it is a question of time.
    """
    found: dict[str, Stance] = dict.fromkeys(NAMES, HOLDS)
    found.update(dict.fromkeys(may.split(), OPEN))
    found.update(dict.fromkeys(breaks.split(), BREAKS))
    found.update(dict.fromkeys(untold.split(), BREAKS if traits.signal == "none" else OPEN))
    if traits.fenced and "tokens" not in may:
        found["write"] = HOLDS
    found.pop("tokens", None)
    return found
