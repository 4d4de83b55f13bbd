"""Situations that come from who uses a lock: readers, permits, users of one process, the dying.

    setup = SITUATIONS["readers"].build(traits_of("kazoo-rw", "zookeeper3", "process"))

Only for libraries that have what is asked for: a lock that readers share, permits, an object or a
client that several users may have (traits.py, SHARING).  Dying is for all.

Trap: that an entry of the dead is in the way shows by a refusal while nobody is inside, so those
who find no room try again instead of waiting, where locks have a time to live.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.verify.model import Setup, Situation, claims
from harness.verify.situations import fault, lasting
from harness.verify.traits import Traits

SHARING_STORES = ("single", "zookeeper", "postgres")  # what users share is not the servers' matter


def _long_ms(traits: Traits) -> int:
    """A lease that nothing here outlasts."""
    return 6000 if traits.lease == "session" else 4000


def _side_by_side(traits: Traits, work: Mapping[str, Any], why: str) -> Setup:
    """No fault: who may be inside together."""
    return Setup(
        claims=claims(traits),
        why=why,
        **lasting(traits, _long_ms(traits), [10, 40], **work, workers=6, idle_ms=[0, 20]),
        time_ms=4000,
    )


def _paused(traits: Traits, work: Mapping[str, Any], why: str) -> Setup | None:
    """Some of those who are inside sleep past their lease."""
    if not traits.timed:
        return None
    lease_ms = traits.short_ms
    return Setup(
        claims=claims(traits, breaks="belief", may="write"),
        why=why,
        **lasting(traits, lease_ms, [40, 80], **work, workers=6),
        faults=(
            fault(
                "worker-pause", "holder", [lease_ms * 3 // 2, lease_ms * 2],
                count=3, every_ms=[300, 600],
            ),
        ),
        time_ms=3000 + 5 * lease_ms,
        recovery_ms=8000,
    )  # fmt: skip


def _dying(traits: Traits, work: Mapping[str, Any], why: str) -> Setup:
    """Some of those who are inside are killed, while others come and go."""
    # Many short sections, so that what a lease of its own ends is told from what others prolong.
    times = {"idle_ms": [20, 100], "acquire_timeout_ms": 0} if traits.lease == "ttl" else {}
    hold = [10, 30] if traits.timed else [100, 200]
    lease_ms = traits.short_ms
    return Setup(
        claims=claims(traits),
        why=why,
        **lasting(traits, lease_ms, hold, **{**work, "workers": 6, **times}),
        faults=(
            fault("worker-kill", "holder", [200, 300], count=2, every_ms=[300, 500]),
        ),
        time_ms=3000 + 3 * lease_ms,
        recovery_ms=8000,
    )  # fmt: skip


def _rw(readers_pct: int) -> dict[str, Any]:
    return {"kind": "rw", "params": {"readers_pct": readers_pct}}


def _permits(k: int) -> dict[str, Any]:
    return {"kind": "semaphore", "params": {"k": k}}


def readers(traits: Traits) -> Setup | None:
    """Only where readers can share a lock."""
    if not traits.reads:
        return None
    return _side_by_side(traits, _rw(60), "readers may be inside together, a writer only alone")


def reader_pause(traits: Traits) -> Setup | None:
    """Only where readers can share a lock that ends while its holder sleeps."""
    if not traits.reads:
        return None
    return _paused(
        traits, _rw(50),
        "the share of a paused reader ends and a writer gets in; its late release is not to end "
        "what belongs to others",
    )  # fmt: skip


def reader_killed(traits: Traits) -> Setup | None:
    """Only where readers can share a lock."""
    if not traits.reads:
        return None
    return _dying(
        traits, _rw(80), "the share of a dead reader ends, though other readers come and go"
    )


def permits(traits: Traits) -> Setup | None:
    """Only for semaphores."""
    if not traits.permits:
        return None
    return _side_by_side(traits, _permits(2), "two permits let in two and not one more")


def permit_pause(traits: Traits) -> Setup | None:
    """Only for semaphores whose permits end while their holders sleep."""
    if not traits.permits:
        return None
    return _paused(
        traits, _permits(2),
        "the permit of a paused holder goes to another; its late release is not to give back "
        "one more",
    )  # fmt: skip


def permit_killed(traits: Traits) -> Setup | None:
    """Only for semaphores."""
    if not traits.permits:
        return None
    return _dying(traits, _permits(3), "the permit of a dead holder comes back by itself")


def crashes(traits: Traits) -> Setup:
    """Every third section of a worker ends in its death, by a kill or by an end of its own."""
    lease_ms = traits.short_ms
    return Setup(
        claims=claims(traits),
        why="what ends the lock of a dead holder (lease, session, connection) lets the next one "
        "in, time and again",
        **lasting(
            traits, lease_ms, [40, 80], kind="crash", params={"every": 3, "back_ms": 200}
        ),
        time_ms=5000 + lease_ms,
        recovery_ms=8000,
    )  # fmt: skip


def _users(users: str, share: str) -> dict[str, Any]:
    return {"kind": "shared", "params": {"users": users, "together": 2, "share": share}}


def shared_object(traits: Traits) -> Setup | None:
    """Only for libraries whose lock objects can be shared; where they have a time to live, the
    work outlasts it."""
    users = traits.sharing.object_users
    if not users or traits.store not in SHARING_STORES:
        return None
    work = _users(users, "object")
    if traits.lease != "ttl":
        return Setup(
            claims=claims(traits),
            why="the object lets in one of its users at a time",
            **lasting(traits, _long_ms(traits), [20, 60], **work),
            time_ms=4000,
        )
    one_owner = "object" in traits.sharing.one_owner
    return Setup(
        claims=claims(traits, breaks="grant belief", may="write answer tokens")
        if one_owner
        else claims(traits, breaks="belief", may="write"),
        why="all users of the object are one owner to the server, so one gives back another's lock"
        if one_owner
        else "each user gives back what it got itself, and is refused when that is gone",
        **lasting(traits, 1000, [1100, 1500], **work, idle_ms=[0, 100]),
        time_ms=8000,
        recovery_ms=8000,
    )


def shared_client(traits: Traits) -> Setup | None:
    """Only for libraries whose clients several users may have, each with lock objects of its own;
    by fork where the library says that it notices."""
    users = traits.sharing.client_users
    if not users or traits.store not in SHARING_STORES:
        return None
    one_owner = "client" in traits.sharing.one_owner
    return Setup(
        claims=claims(traits, breaks="grant belief", may="write answer tokens")
        if one_owner
        else claims(traits),
        why="the lock belongs to the connection, and who has that has the lock"
        if one_owner
        else "the owner of a lock is made anew with each acquire, whoever has the client",
        **lasting(traits, _long_ms(traits), [20, 60], **_users(users, "connection")),
        time_ms=4000,
    )


def _pooled(per: str, wait_ms: int) -> dict[str, Any]:
    return {
        "kind": "pool",
        "params": {"together": 4, "size": 3, "per": per, "wait_ms": wait_ms},
    }


def pooled(traits: Traits) -> Setup | None:
    """Only for libraries that draw from a pool of a given size; here one too few."""
    if not traits.sharing.pool or traits.store not in SHARING_STORES:
        return None
    if traits.lease == "connection":
        return Setup(
            claims=claims(traits, breaks="grant belief", may="write answer progress tokens"),
            why="the session that has the lock goes back to the pool: who draws it has the lock "
            "too, and who draws another cannot give it back",
            **lasting(traits, 0, [20, 60], **_pooled("operation", 500)),
            time_ms=5000,
            recovery_ms=8000,
        )
    if traits.by_itself:
        return Setup(
            claims=claims(traits, may="write", untold="belief"),
            why="those who wait have all connections, so the renewal finds none",
            **lasting(
                traits, 1000, [1500, 2500], **_pooled("operation", 100), idle_ms=[0, 100]
            ),
            time_ms=8000,
            recovery_ms=8000,
        )  # fmt: skip
    return Setup(
        claims=claims(traits),
        why="a lock with a time to live is no connection's, and waiting keeps none for long",
        **lasting(traits, 4000, [20, 60], **_pooled("operation", 500)),
        time_ms=4000,
    )


def pooled_kept(traits: Traits) -> Setup | None:
    """Only where a lock is a connection's: it keeps the one that it was got on."""
    if traits.lease != "connection" or not traits.sharing.pool:
        return None
    if traits.store not in SHARING_STORES:
        return None
    return Setup(
        claims=claims(traits),
        why="the session that has the lock is nobody else's as long as it has it",
        **lasting(traits, 0, [20, 60], **_pooled("section", 4000)),
        time_ms=4000,
    )


USER_SAFETY = (
    Situation(
        name="readers", says="readers share the lock and writers are alone in it, without a fault",
        kind="safety", dimension="lease", build=readers, quick=True,
    ),
    Situation(
        name="reader-pause", says="readers and writers are paused past their lease, then go on",
        kind="safety", dimension="identity", build=reader_pause,
    ),
    Situation(
        name="permits", says="more clients than permits, without a fault",
        kind="safety", dimension="lease", build=permits, quick=True,
    ),
    Situation(
        name="permit-pause", says="holders of permits are paused past their lease, then go on",
        kind="safety", dimension="identity", build=permit_pause,
    ),
    Situation(
        name="shared-object", says="several users of one process have one lock object",
        kind="safety", dimension="identity", build=shared_object,
    ),
    Situation(
        name="shared-client", says="several users of one process have one client",
        kind="safety", dimension="identity", build=shared_client,
    ),
    Situation(
        name="pooled", says="threads draw a connection for each call, and there is one too few",
        kind="safety", dimension="identity", build=pooled,
    ),
    Situation(
        name="pooled-kept", says="threads draw a connection from a pool for as long as they hold",
        kind="safety", dimension="identity", build=pooled_kept,
    ),
)  # fmt: skip

USER_LIVENESS = (
    Situation(
        name="crashes", says="every third section ends in the death of its worker",
        kind="liveness", dimension="recovery", build=crashes,
    ),
    Situation(
        name="reader-killed", says="readers and writers die inside, while others come and go",
        kind="liveness", dimension="recovery", build=reader_killed,
    ),
    Situation(
        name="permit-killed", says="holders of permits die inside, while others come and go",
        kind="liveness", dimension="recovery", build=permit_killed,
    ),
)  # fmt: skip
