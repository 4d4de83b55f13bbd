"""Situations that come from the client and its network: pauses, cuts, deaths, a wrong clock.

    situation = SITUATIONS["holder-pause"]
    setup = situation.build(traits_of("redis-py", "redis-single", "process"))

Times are long enough for what the situation is about and no longer; leases are whole seconds.
"""

from __future__ import annotations

from typing import Any

from harness.verify.model import Setup, Situation, claims
from harness.verify.traits import Traits

Span = int | list[int]
START = [800, 1200]  # workers have got going by then


def fault(kind: str, target: str, duration_ms: Span, **fields: Any) -> dict[str, Any]:
    """A fault, armed after START and waiting for somebody to hold the lock."""
    return {
        "kind": kind, "target": target, "when": "held", "start_ms": START,
        "duration_ms": duration_ms, **fields,
    }  # fmt: skip


def lasting(traits: Traits, lease_ms: int, hold_ms: Span, **fields: Any) -> dict[str, Any]:
    """Workload and options with a lease of this length, however the library names it."""
    workload = {
        "workers": 4, "hold_ms": hold_ms, "acquire_timeout_ms": 8000, **fields,
    }  # fmt: skip
    if traits.lease == "ttl":
        workload["ttl_ms"] = lease_ms
    options = {traits.session_option: lease_ms} if traits.lease == "session" else {}
    return {"workload": workload, "client_options": options}


def renewing(traits: Traits, lease_ms: int) -> dict[str, Any]:
    """The field of a workload that renews, where the library can."""
    return {"renew_every_ms": lease_ms * 2 // 5} if traits.renews else {}


def holder_pause(traits: Traits) -> Setup:
    """A pause of 2.5 leases; where locks have no lease, one that outlasts the work."""
    if not traits.timed:
        return Setup(
            claims=claims(traits),
            why="this lock has no time to live: a paused holder keeps it, and others wait",
            **lasting(traits, 0, [600, 900]),
            faults=(fault("worker-pause", "holder", [2500, 3000]),),
        )
    lease_ms = traits.short_ms
    return Setup(
        claims=claims(traits, breaks="belief write"),
        why="a paused client cannot know that its lease is over; only a token stops its late write",
        **lasting(traits, lease_ms, [40, 80]),
        faults=(fault("worker-pause", "holder", [lease_ms * 5 // 2, lease_ms * 3]),),
        time_ms=2000 + 4 * lease_ms,
    )


def late_release(traits: Traits) -> Setup | None:
    """Only where a lock ends while its holder sleeps."""
    if not traits.timed:
        return None
    lease_ms = traits.short_ms
    return Setup(
        claims=claims(traits, breaks="belief", may="write"),
        why="a release must not end a lock that has gone to somebody else meanwhile",
        **lasting(traits, lease_ms, [lease_ms * 6 // 10, lease_ms * 8 // 10], idle_ms=[0, 5]),
        faults=(
            fault(
                "worker-pause", "holder", [lease_ms * 13 // 10, lease_ms * 17 // 10],
                count=3, every_ms=[100, 300],
            ),
        ),
        time_ms=3000 + 6 * lease_ms,
        recovery_ms=8000,
    )  # fmt: skip


def late_renewal(traits: Traits) -> Setup | None:
    """Only for libraries that renew, by hand or by themselves."""
    if not (traits.renews or traits.by_itself):
        return None
    lease_ms = traits.short_ms
    return Setup(
        claims=claims(traits, breaks="belief", may="write"),
        why="a renewal must not bring back or prolong a lock that has gone to somebody else",
        **lasting(
            traits, lease_ms, [lease_ms * 3 // 2, lease_ms * 2], **renewing(traits, lease_ms)
        ),
        faults=(
            fault(
                "worker-pause", "holder", [lease_ms * 13 // 10, lease_ms * 16 // 10],
                count=2, every_ms=[300, 600],
            ),
        ),
        time_ms=3000 + 5 * lease_ms,
        recovery_ms=8000,
    )  # fmt: skip


def overrun(traits: Traits) -> Setup | None:
    """Only for locks with a time to live that nothing prolongs unasked."""
    if traits.lease != "ttl" or traits.by_itself:
        return None
    lease_ms = traits.short_ms
    return Setup(
        claims=claims(traits, breaks="belief", may="write"),
        why="work longer than the lease, without a renewal, outlives it; nothing else is at fault",
        **lasting(traits, lease_ms, 0, kind="longhold", params={"leases_pct": 200}),
        time_ms=2000 + 3 * lease_ms,
        recovery_ms=8000,
    )


def renewed(traits: Traits) -> Setup | None:
    """Only for libraries that renew, by hand or by themselves."""
    if not (traits.renews or traits.by_itself):
        return None
    lease_ms = traits.short_ms
    if traits.renews:
        work: dict[str, Any] = {"kind": "renew", "params": {"leases": 3, "per_lease": 3}}
    else:
        work = {"kind": "mutex"}
    return Setup(
        claims=claims(traits),
        why="who renews in time keeps its lock, three leases long",
        **lasting(
            traits, lease_ms, [lease_ms * 5 // 2, lease_ms * 3],
            **work, acquire_timeout_ms=16_000,
        ),
        time_ms=4000 + lease_ms,
        recovery_ms=8000,
    )  # fmt: skip


def lost_update(traits: Traits) -> Setup:
    """Work that builds on what was read at its beginning; the holder is paused in between."""
    lease_ms = traits.short_ms
    timed = traits.timed
    return Setup(
        claims=claims(traits, breaks="belief write") if timed else claims(traits),
        why="who wakes up past its lease writes what it made of an old value, unless it is fenced"
        if timed
        else "a paused holder keeps its lock, so nothing comes between its read and its write",
        **lasting(traits, lease_ms, [40, 80], kind="update"),
        faults=(fault("worker-pause", "holder", [lease_ms * 5 // 2, lease_ms * 3]),),
        time_ms=2000 + 4 * lease_ms,
        recovery_ms=8000,
    )


def holder_jammed(traits: Traits) -> Setup | None:
    """For libraries that renew, and for locks of sessions and connections."""
    if traits.lease == "connection":
        return Setup(
            claims=claims(traits),
            why="the connection stands and so does the lock; the release arrives late",
            **lasting(traits, 0, [600, 900]),
            faults=(fault("jam", "holder", [2500, 3000]),),
            recovery_ms=8000,
        )
    if not (traits.renews or traits.by_itself) and traits.lease != "session":
        return None
    lease_ms = traits.short_ms
    hold = [lease_ms * 3 // 2, lease_ms * 2]
    return Setup(
        claims=claims(traits, may="write", untold="belief"),
        why="its renewals are stuck in the network and it believes in its lock meanwhile",
        **lasting(traits, lease_ms, hold, **renewing(traits, lease_ms)),
        faults=(fault("jam", "holder", [lease_ms * 3, lease_ms * 7 // 2]),),
        time_ms=3000 + 4 * lease_ms,
        recovery_ms=10_000,
    )


def holder_severed(traits: Traits) -> Setup:
    """Connections are closed and refused; for longer than the lease, if the library renews."""
    if traits.lease == "connection":
        return Setup(
            claims=claims(traits, may="write", untold="belief"),
            why="the server gives the lock back when the connection closes; its holder hears of "
            "it with its next statement",
            **lasting(traits, 0, [1500, 2000]),
            faults=(fault("sever", "holder", [300, 500]),),
            recovery_ms=8000,
        )
    if traits.renews or traits.by_itself:
        lease_ms = traits.short_ms
        told = traits.renews
        return Setup(
            claims=claims(traits) if told else claims(traits, may="write", untold="belief"),
            why="its next renewal fails at once, so it stops before its lease is over"
            if told
            else "the renewals of the library fail, and its holder is told or not",
            **lasting(
                traits, lease_ms, [lease_ms * 3 // 2, lease_ms * 2], **renewing(traits, lease_ms)
            ),
            faults=(fault("sever", "holder", [lease_ms * 2, lease_ms * 5 // 2]),),
            time_ms=3000 + 3 * lease_ms,
            recovery_ms=8000,
        )
    return Setup(
        claims=claims(traits),
        why="lease or session outlast the cut, so the holder is still alone",
        **lasting(traits, 6000 if traits.lease == "session" else 3000, [20, 60]),
        faults=(fault("sever", "holder", [500, 800]),),
        time_ms=5000,
        recovery_ms=8000,
    )


def reply_cut(traits: Traits) -> Setup:
    """The grant happens and its answer never arrives."""
    when = "between-grant-and-reply" if traits.timed else "waiting"
    return Setup(
        claims=claims(traits),
        why="nobody knows of the grant; it blocks the others until its lease is over, no longer",
        **lasting(traits, traits.short_ms, [20, 60] if traits.timed else [300, 500]),
        faults=(fault("cut-reply", "waiter", [500, 800], when=when),),
        time_ms=3000 + traits.short_ms,
        recovery_ms=8000,
    )


def slow_links(traits: Traits) -> Setup:
    """Every answer is slow."""
    return Setup(
        claims=claims(traits),
        why="slow is not wrong: a lease is longer than the way to the server",
        **lasting(traits, 6000 if traits.lease == "session" else 4000, [20, 60]),
        faults=(
            fault(
                "latency", "all-workers", [1800, 2200], when="", params={"latency_ms": 100}
            ),
        ),
        time_ms=5000,
        recovery_ms=8000,
    )  # fmt: skip


def impatient(traits: Traits) -> Setup:
    """Waiters give up after a moment, over and over, while answers are slow."""
    return Setup(
        claims=claims(traits),
        why="who stops waiting must leave nothing behind that blocks the others",
        **lasting(
            traits, 6000 if traits.lease == "session" else 4000, [10, 30],
            kind="cancel", params={"patience_ms": 150}, workers=6,
        ),
        faults=(
            fault("latency", "all-workers", [1500, 2000], when="", params={"latency_ms": 40}),
        ),
        time_ms=4500,
        recovery_ms=8000,
    )  # fmt: skip


def worker_killed(traits: Traits) -> Setup:
    """The holder dies inside its critical section."""
    return Setup(
        claims=claims(traits),
        why="what ends the lock of a dead holder (lease, session, connection) lets the next one in",
        **lasting(traits, traits.short_ms, [40, 80] if traits.timed else [600, 900]),
        faults=(fault("worker-kill", "holder", [300, 600]),),
        time_ms=3000 + traits.short_ms,
        recovery_ms=8000,
    )


def client_clock(traits: Traits) -> Setup:
    """The holder's wall clock runs at almost twice the true rate."""
    return Setup(
        claims=claims(traits),
        why="whose lock it is must not depend on the wall clock of a client",
        **lasting(traits, 2000, [20, 60]),
        faults=(
            fault("worker-clock-skew", "holder", [2000, 2500], params={"rate_ppm": 900_000}),
        ),
        time_ms=5000,
        recovery_ms=8000,
    )  # fmt: skip


CLIENT_SAFETY = (
    Situation(
        name="holder-pause", says="the holder is paused past its lease, then writes",
        kind="safety", dimension="fencing", build=holder_pause, quick=True, key=True,
    ),
    Situation(
        name="late-release", says="paused holders wake up and release while another holds",
        kind="safety", dimension="identity", build=late_release, quick=True,
    ),
    Situation(
        name="late-renewal", says="paused holders wake up and renew while another holds",
        kind="safety", dimension="identity", build=late_renewal,
    ),
    Situation(
        name="overrun", says="work longer than the lease, without a renewal and without a fault",
        kind="safety", dimension="lease", build=overrun,
    ),
    Situation(
        name="lost-update", says="work that builds on what it read, by a holder that is paused",
        kind="safety", dimension="fencing", build=lost_update,
    ),
    Situation(
        name="renewed", says="work of three leases, renewed, without a fault",
        kind="safety", dimension="lease", build=renewed,
    ),
    Situation(
        name="holder-jammed", says="nothing of the holder arrives until its lease is over",
        kind="safety", dimension="lease", build=holder_jammed, key=True,
    ),
    Situation(
        name="holder-severed", says="the connections of the holder are closed and refused",
        kind="safety", dimension="lease", build=holder_severed, quick=True, key=True,
    ),
    Situation(
        name="client-clock", says="the wall clock of the holder runs almost twice too fast",
        kind="safety", dimension="lease", build=client_clock,
    ),
)  # fmt: skip

CLIENT_LIVENESS = (
    Situation(
        name="worker-killed", says="the holder dies in its critical section",
        kind="liveness", dimension="recovery", build=worker_killed, quick=True, key=True,
    ),
    Situation(
        name="reply-cut", says="a grant happens, and its answer never arrives",
        kind="liveness", dimension="release_retry", build=reply_cut,
    ),
    Situation(
        name="impatient", says="waiters give up after a moment, over and over",
        kind="liveness", dimension="release_retry", build=impatient,
    ),
    Situation(
        name="slow-links", says="every answer takes 100 ms longer",
        kind="liveness", dimension="release_retry", build=slow_links,
    ),
)  # fmt: skip
