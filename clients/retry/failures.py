"""What kind of failure it was: whether waiting can cure it, and what to check first.

    kind_of("lock is held by another owner", None)      # Kind.BUSY
    kind_of("request timed out", "DEADLINE_EXCEEDED")   # Kind.UNKNOWN: it may hold the lock

The text is data: it is matched, never obeyed.  The error code decides before the reason does.
Trap: a plain "timeout" may have come after the request was sent, so it counts as unknown outcome.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache


class Kind(StrEnum):
    """Kinds of failure that are treated differently."""

    BUSY = "busy"
    DENIED = "denied"
    INVALID = "invalid"
    DOWN = "down"
    UNKNOWN = "unknown-outcome"
    QUORUM = "quorum"
    EXPIRED = "lease-expired"
    STALE = "stale-token"
    DEADLOCK = "deadlock"
    UNREACHABLE = "unreachable"
    OTHER = "other"


CURELESS = {Kind.DENIED, Kind.INVALID, Kind.DOWN}

_FORMS: tuple[tuple[Kind, str], ...] = (
    (Kind.DEADLOCK, r"dead-?lock(?: was)?[- ]?detected|^deadlock$|^40P01$"),
    (
        Kind.DENIED,
        r"not[- ]?authori[sz]ed|unauthori[sz]ed|unauthenticated|auth(?:entication|orization)?"
        r"[- ]?(?:failed|failure|error|required)|permission[- ]?denied|access[- ]?denied|forbidden"
        r"|no[- ]?permission|no[- ]?auth\b|^noauth|^noperm|^wrongpass|^40[13]$|^42501$|^28[0P]"
        r"|insufficient[- ]?privilege|invalid[- ]?password|invalid[- ]?credentials",
    ),
    (
        Kind.INVALID,
        r"invalid[- ]?(?:argument|request|parameter|name|key|ttl|lock)|bad[- ]?(?:argument|request)"
        r"|malformed|^400$|^22\d\d\d$|^42601$|unknown command|wrong number of arguments|wrongtype",
    ),
    (
        Kind.DOWN,
        r"permanently[- ]?(?:down|unavailable|gone|closed)|decommission|service[- ]?removed"
        r"|does not exist any ?more|no longer exists|unimplemented|not[- ]?supported|^410$|^501$",
    ),
    (
        Kind.STALE,
        r"stale[- ]?(?:fencing[- ]?)?token|fencing[- ]?token|token[- ]?(?:is )?stale|fenced",
    ),
    (
        Kind.EXPIRED,
        r"lease[- ]?(?:has |was |is )?(?:expired|lost|not[- ]?found)|expired during"
        r"|session[- ]?expired"
        r"|lease[- ]?expired|lock (?:has )?expired|requested lease not found",
    ),
    (
        Kind.QUORUM,
        r"quorum|majority|no[- ]?leader|leader[- ]?(?:lost|changed|election)|clusterdown|noreplicas"
        r"|minority|raft.*(?:no leader|not leader)",
    ),
    (
        Kind.UNREACHABLE,
        r"connection[- ]?refused|econnrefused|could not connect|cannot connect"
        r"|connect(?:ion)? timed? ?out"
        r"|name or service not known|no route to host|host unreachable|network is unreachable|^busy"
        r"loading|loading the dataset|^loading$|^unavailable$|^14$|^503$|^57P03$|^08001$|too many"
        r" (?:connections|clients)|^53300$|read-?only|^-?oom|out of memory",
    ),
    (
        Kind.UNKNOWN,
        r"unknown[- ]?outcome|outcome (?:is )?unknown|timed?[- ]?out(?! waiting)|timeout"
        r"(?! waiting)"
        r"|deadline[- _]?exceeded|connection[- ]?(?:reset|lost|loss|closed|aborted|error)"
        r"|econnreset|broken[- ]?pipe|epipe|no (?:answer|response|reply)|lost (?:answer|reply)"
        r"|server closed the connection|^504$|^08006$|^57P01$|^4$",
    ),
    (
        Kind.BUSY,
        r"held|busy|contention|contended|conflict|already[- ]?(?:locked|acquired|exists|taken)"
        r"|not[- ]?acquired|lock[- ]?not[- ]?available|locked|waiting|^409$|^423$|^55P03$"
        r"|node exists"
        r"|in use|unable to acquire|could not (?:acquire|obtain)|failed to acquire",
    ),
)  # fmt: skip
_COMPILED = tuple((kind, re.compile(form, re.IGNORECASE)) for kind, form in _FORMS)


@lru_cache(maxsize=1024)
def kind_of(reason: str, code: str | int | None) -> Kind:
    """The kind of a failure, by its error code if that says it, else by its reason."""
    for text in (str(code) if code is not None else "", reason):
        text = " ".join(text[:2_000].replace("_", " ").split())
        for kind, form in _COMPILED:
            if text and form.search(text):
                return kind
    return Kind.OTHER
