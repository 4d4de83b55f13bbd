"""Situations that come from the servers: pauses, kills, restarts, a fail-over, a wrong clock.

What a store keeps is what its own documentation says of it: Redis with its append-only file keeps
every lock over a restart, without it none; etcd and ZooKeeper keep what a majority has; PostgreSQL
keeps no advisory lock at all.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.verify.model import Setup, Situation, claims
from harness.verify.situations import (
    CLIENT_LIVENESS,
    CLIENT_SAFETY,
    fault,
    lasting,
    renewing,
)
from harness.verify.traits import Traits
from harness.verify.users import USER_LIVENESS, USER_SAFETY

# Store -> which nodes have to go so that it matters.
DECIDING: Mapping[str, str] = {
    "single": "primary", "redlock": "majority", "sentinel": "primary", "etcd": "all-nodes",
    "zookeeper": "any-node", "postgres": "primary", "postgres-ha": "primary",
}  # fmt: skip
ONE: Mapping[str, str] = {
    **DECIDING, "redlock": "any-node", "etcd": "primary", "zookeeper": "primary",
}  # fmt: skip


def _outlasting(traits: Traits) -> tuple[int, list[int]]:
    """(lease, hold) that outlast the restart of what decides."""
    if not traits.slow:
        return 6000, [1500, 2000]
    return (15_000, [6000, 7000]) if traits.store == "redlock" else (10_000, [3000, 3500])


def server_restart(traits: Traits) -> Setup | None:
    """Killed and started again with its data, while a lock is held; not for a fail-over pair."""
    if traits.store not in DECIDING or traits.store in ("sentinel", "postgres-ha"):
        return None
    target = DECIDING[traits.store]
    if traits.lease == "connection":
        return Setup(
            claims=claims(traits, may="write tokens", untold="belief"),
            why="the lock was in the server's memory, with its connection: the server grants "
            "while the holder still works",
            **lasting(traits, 0, [5000, 6000]),
            faults=(fault("node-restart", target, [50, 100], when=""),),
            time_ms=8000,
            recovery_ms=10_000,
        )
    lease_ms, hold = _outlasting(traits)
    if traits.store == "etcd":
        lease_ms = 4000
    return Setup(
        claims=claims(traits),
        why="what was granted is on disk before it is answered, so no lock is forgotten",
        **lasting(
            traits, lease_ms, hold,
            **{**renewing(traits, lease_ms), "acquire_timeout_ms": 2 * lease_ms + 2000},
        ),
        faults=(fault("node-restart", target, [50, 100]),),
        time_ms=4000 + hold[1],
        recovery_ms=12_000,
    )  # fmt: skip


def server_restart_empty(traits: Traits) -> Setup | None:
    """Started again without its data: Redis without persistence, one wiped server of ZooKeeper,
    one member of etcd that is removed and added anew."""
    if traits.store in ("zookeeper", "etcd"):
        replaced = traits.store == "etcd"
        return Setup(
            claims=claims(traits),
            why="the two others remember every lock, and the new member gets all of it from them"
            if replaced
            else "no lock was on that server alone",
            # Replacing a member takes a second or two: the lock is to be held all the while.
            **lasting(traits, 6000, [1500, 2000] if replaced else [40, 80]),
            faults=(fault("node-restart-empty", "minority", [50, 100]),),
            time_ms=9000 if replaced else 7000,
            recovery_ms=10_000,
        )
    if traits.store not in ("single", "redlock", "sentinel") or traits.lease == "connection":
        return None
    lease_ms, hold = _outlasting(traits)
    if traits.store == "sentinel":
        lease_ms, hold = 15_000, [6000, 7000]
    options = {"persistence": "none"}
    if traits.store == "sentinel":
        options["down_after_ms"] = "10000"
    return Setup(
        claims=claims(traits, breaks="grant belief", may="write tokens answer"),
        why="a store that keeps nothing on disk forgets the lock and grants it again",
        **lasting(traits, lease_ms, hold, acquire_timeout_ms=lease_ms + 5000),
        faults=(fault("node-restart-empty", DECIDING[traits.store], [50, 100]),),
        time_ms=3000 + hold[1] * 2,
        recovery_ms=lease_ms + 5000,
        backend_options=options,
    )


def flushed(traits: Traits) -> Setup | None:
    """Somebody deletes all keys; not for PostgreSQL, where no command does that to locks."""
    if traits.store not in ("single", "redlock", "etcd", "zookeeper", "sentinel"):
        return None
    if traits.lease == "connection":
        return None  # there is no key that could be deleted
    target = "majority" if traits.store == "redlock" else "primary"
    lease_ms = 6000
    return Setup(
        claims=claims(traits, breaks="grant belief", may="write tokens answer"),
        why="the lock is gone with all other keys, and the next who asks is granted it",
        **lasting(traits, lease_ms, [1500, 2000]),
        faults=(fault("flush", target, [50, 100]),),
        time_ms=5000,
        recovery_ms=8000,
    )


def clock_jump(traits: Traits) -> Setup | None:
    """The server's wall clock steps; not for etcd, where no fault can do it."""
    if traits.store == "postgres" and traits.lease == "ttl":
        return None  # it depends on whose clock its rows name
    if traits.store in ("single", "sentinel") and traits.lease == "ttl":
        return Setup(
            claims=claims(traits, breaks="grant belief", may="write"),
            why="Redis ends a lease by its wall clock, so a step ends the lock before its time",
            **lasting(traits, 6000, [1500, 2000]),
            faults=(fault("clock-jump", "primary", [500, 800], params={"offset_ms": 10_000}),),
            time_ms=5000,
            recovery_ms=8000,
        )
    if traits.store not in ("single", "redlock", "zookeeper", "postgres"):
        return None
    target = "any-node" if traits.store == "redlock" else "primary"
    why = {
        "redlock": "one clock that jumps undoes no lock that all five granted, but one that a bare "
        "majority did",
        "zookeeper": "sessions are counted by a clock that only goes up",
        "postgres": "an advisory lock has no time to live, so no clock can end it",
        "single": "a lock of a connection has no time to live, so no clock can end it",
    }
    may = "grant belief write tokens" if traits.store == "redlock" else ""
    return Setup(
        claims=claims(traits, may=may),
        why=why[traits.store],
        **lasting(traits, 6000, [500, 800]),
        faults=(fault("clock-jump", target, [1000, 1500], params={"offset_ms": 3_600_000}),),
        time_ms=5000,
        recovery_ms=10_000,
    )


def session_ended(traits: Traits) -> Setup | None:
    """The server ends the holder's connection (or session), as an operator does."""
    if traits.lease == "session":
        return Setup(
            claims=claims(traits, may="write", untold="belief"),
            why="the lock goes to the next at once; its holder learns of it when it is too late",
            **lasting(traits, 2000, [600, 2000], acquire_timeout_ms=9000),
            faults=(
                fault("session-expire", "holder", [50, 100], count=4, every_ms=[300, 600]),
            ),
            time_ms=9000,
            recovery_ms=9000,
        )  # fmt: skip
    if traits.lease == "connection":
        return Setup(
            claims=claims(traits, may="write", untold="belief"),
            why="the lock ends with its session, and its holder hears of it with its next "
            "statement",
            **lasting(traits, 0, [1500, 2000]),
            faults=(fault("backend-kill", "holder", [50, 100]),),
            time_ms=5000,
            recovery_ms=8000,
        )
    if traits.store not in ("single", "sentinel"):
        return None
    return Setup(
        claims=claims(traits),
        why="a Redis lock lives by its lease and not by a connection",
        **lasting(traits, 4000, [300, 500]),
        faults=(fault("backend-kill", "holder", [50, 100]),),
        time_ms=4000,
        recovery_ms=8000,
    )


def failover(traits: Traits) -> Setup | None:
    """Only where a replica can take over."""
    if traits.store == "sentinel":
        return Setup(
            claims=claims(traits, breaks="grant belief", may="write tokens answer"),
            why="the old primary goes on granting for seconds, and forgets it all when it becomes "
            "a replica",
            **lasting(
                traits, 5000, [1500, 2000], workers=6, keys=3, acquire_timeout_ms=10_000
            ),
            faults=(fault("failover", "primary", 14_000, params={"old": "lives"}),),
            time_ms=17_000,
            recovery_ms=15_000,
        )  # fmt: skip
    if traits.store != "postgres-ha":
        return None
    return Setup(
        claims=claims(traits, breaks="belief", may="write tokens"),
        why="advisory locks are not replicated: the new primary grants at once",
        **lasting(traits, 0, [5000, 6000]),
        faults=(fault("failover", "primary", [2000, 2500], when=""),),
        time_ms=9000,
        recovery_ms=10_000,
    )


def server_pause(traits: Traits) -> Setup | None:
    """A server stands still for less than a lease."""
    if traits.store not in ONE:
        return None
    lease_ms = 6000 if traits.lease == "session" else 4000
    return Setup(
        claims=claims(traits),
        why="nothing is granted meanwhile, and leases outlast the pause",
        **lasting(traits, lease_ms, [20, 60], acquire_timeout_ms=9000),
        faults=(fault("node-pause", ONE[traits.store], [500, 900]),),
        time_ms=4500,
        recovery_ms=9000,
    )


def server_killed(traits: Traits) -> Setup | None:
    """Killed, and away for a while; where locks end with their connection see server-restart."""
    if traits.store not in ONE or traits.lease == "connection":
        return None
    lease_ms = 6000 if traits.lease == "session" else 3000
    away = [4000, 5000] if traits.store == "sentinel" else [1000, 1500]
    hold = [200, 300] if traits.store == "sentinel" else [40, 80]
    return Setup(
        claims=claims(traits),
        why="without a server nobody is granted anything; afterwards the lock is there, with its "
        "lease",
        **lasting(traits, lease_ms, hold, acquire_timeout_ms=9000),
        faults=(fault("node-kill", ONE[traits.store], away),),
        time_ms=9000 if traits.store == "sentinel" else 5500,
        recovery_ms=15_000 if traits.store == "sentinel" else 9000,
    )


def minority_away(traits: Traits) -> Setup | None:
    """Only where servers without a leader decide: an election would be a part of the bound."""
    if traits.store != "redlock":
        return None
    lease_ms = 1000
    return Setup(
        claims=claims(traits),
        why="four servers of five are a majority, so the lock is granted as if nothing were wrong",
        **lasting(traits, lease_ms, [20, 60], workers=3, acquire_timeout_ms=2000),
        faults=(fault("node-kill", "any-node", [5500, 6000], when=""),),
        time_ms=8000,
        grant_ms=3 * lease_ms,
    )


def herd(traits: Traits) -> Setup | None:
    """Many clients with the shortest sections, and a server that is gone for a moment."""
    if traits.store not in ONE or traits.lease == "connection" or traits.store == "sentinel":
        return None
    lease_ms = 6000 if traits.lease == "session" else 4000
    return Setup(
        claims=claims(traits),
        why="all of them come back at once, and somebody gets in",
        **lasting(traits, lease_ms, 0, kind="churn", params={"hold_ms": 5}, workers=12),
        faults=(fault("node-restart", ONE[traits.store], [50, 100], when=""),),
        time_ms=4500,
        recovery_ms=10_000,
    )


SERVER_SAFETY = (
    Situation(
        name="server-restart", says="what decides is killed and comes back with its data",
        kind="safety", dimension="lease", build=server_restart, key=True,
    ),
    Situation(
        name="server-restart-empty", says="it comes back without its data",
        kind="safety", dimension="lease", build=server_restart_empty, quick=True, key=True,
    ),
    Situation(
        name="flushed", says="somebody deletes all keys while a lock is held",
        kind="safety", dimension="lease", build=flushed,
    ),
    Situation(
        name="clock-jump", says="the wall clock of the server steps forward",
        kind="safety", dimension="lease", build=clock_jump,
    ),
    Situation(
        name="session-ended", says="the server ends the holder's connection or session",
        kind="safety", dimension="lease", build=session_ended,
    ),
    Situation(
        name="failover", says="a replica takes the place of the primary",
        kind="safety", dimension="lease", build=failover,
    ),
)  # fmt: skip

SERVER_LIVENESS = (
    Situation(
        name="server-killed", says="a server is killed and stays away for a while",
        kind="liveness", dimension="recovery", build=server_killed,
    ),
    Situation(
        name="minority-away", says="one server of five is away for many leases",
        kind="liveness", dimension="recovery", build=minority_away,
    ),
    Situation(
        name="herd", says="a dozen clients without a pause, and a restart under them",
        kind="liveness", dimension="recovery", build=herd,
    ),
    Situation(
        name="server-pause", says="a server stands still for less than a lease",
        kind="liveness", dimension="recovery", build=server_pause,
    ),
)  # fmt: skip

SITUATIONS: Mapping[str, Situation] = {
    one.name: one
    for one in (
        *CLIENT_SAFETY, *USER_SAFETY, *SERVER_SAFETY,
        *CLIENT_LIVENESS, *USER_LIVENESS, *SERVER_LIVENESS,
    )
}  # fmt: skip
"""The whole table, safety first."""
