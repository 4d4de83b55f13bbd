"""The 25 ways in which distributed locks fail, and what of this project catches each.

    KINDS["K01"].name, KINDS["K01"].live

``live`` names checkers that judge a run; the rules of the audit name their kind themselves, so the
reference joins both.  A kind without either stands in the reference with "nothing yet".
"""

from __future__ import annotations

import msgspec


class Kind(msgspec.Struct, frozen=True):
    """One kind: a name, what must hold, and the checkers that see it break in a run."""

    name: str
    must: str
    live: tuple[str, ...] = ()


KINDS = {
    "K01": Kind(
        "weak owner check",
        "whatever ends or lengthens a lock compares, in one step, a value of one acquisition",
        ("honesty", "lease", "exclusion"),
    ),
    "K02": Kind(
        "right token, wrong scope",
        "an identity lives as long and as wide as one acquisition",
        ("lease", "exclusion"),
    ),
    "K03": Kind(
        "key derivation",
        "all processes derive the same key for a thing, and different keys for different things",
        ("exclusion",),
    ),
    "K04": Kind(
        "entered without the lock",
        "no path leads from a failed acquire to the protected code",
        ("exclusion", "effects"),
    ),
    "K05": Kind(
        "no lease, or not at once",
        "the lease is set in the step that takes the lock",
        ("liveness",),
    ),
    "K06": Kind(
        "times that do not fit",
        "lease, renewal, work and time limits of a lock fit each other in one unit",
        ("exclusion",),
    ),
    "K07": Kind(
        "renewal without effect",
        "renewal does not depend on the work and is proven by the server",
        ("exclusion",),
    ),
    "K08": Kind(
        "loss not noticed",
        "when the lease can be over, the holder knows and the work stops",
        ("belief", "exclusion", "fencing"),
    ),
    "K09": Kind(
        "validity after the grant",
        "a grant counts from before the request that won, less drift",
        ("lease", "exclusion"),
    ),
    "K10": Kind("trusted clocks", "a lease is judged on one clock", ("lease", "exclusion")),
    "K11": Kind(
        "no fence at the resource",
        "the resource refuses tokens that are older than one it has seen",
        ("fencing", "effects"),
    ),
    "K12": Kind(
        "replication and split brain",
        "a lock survives the loss of the nodes that it is said to survive",
        ("lease", "liveness"),
    ),
    "K13": Kind(
        "the store drops or refuses locks",
        "only the lock's own protocol removes its key",
        ("lease", "exclusion"),
    ),
    "K14": Kind(
        "session locks on shared connections",
        "a session lock keeps its connection from lock to unlock, and the unlock's answer is read",
        ("exclusion", "liveness"),
    ),
    "K15": Kind(
        "lock against transaction",
        "the lock encloses the commit",
        ("effects",),
    ),
    "K16": Kind(
        "release not completed",
        "ownership is forgotten only after the server confirmed",
        ("honesty", "liveness", "lease"),
    ),
    "K17": Kind("ghost contender", "a failed acquire leaves nothing behind", ("liveness",)),
    "K18": Kind("slow takeover", "from a death to the next grant there is a bound", ("liveness",)),
    "K19": Kind(
        "unsafe takeover",
        "a takeover is a compare-and-swap on the lock that was judged stale",
        ("exclusion", "fencing"),
    ),
    "K20": Kind("lost wake-up", "a waiter also looks by a timer", ("liveness",)),
    "K21": Kind("starvation", "how often a waiter is passed by is counted", ("fairness",)),
    "K22": Kind("retry storm", "waits grow, are random and have a cap", ("fairness", "stats")),
    "K23": Kind(
        "retries without bound or meaning",
        "each acquire has a deadline, and busy, lost and unreachable are told apart",
        ("liveness",),
    ),
    "K24": Kind("lock order", "several locks are taken in one order", ("liveness",)),
    "K25": Kind(
        "state not read again",
        "after a wait or a takeover the state is read anew",
        ("effects",),
    ),
}
