"""The contract of a recipe: a lock library written once, run live and in virtual time.

A recipe is a class whose operations are generators.  They *yield* commands to the lock server and
get the answers back; nothing in them knows a socket, a clock or an event loop, so the very same
code talks to a real Redis (``clients/adapters/recipe.py``) and to the simulated one
(``clients/sim``).

    class Example(Recipe):
        def acquire(self, key, ttl_ms, timeout_ms):
            owner = self.fresh_owner()
            if (yield "SET", key, owner, "NX", "PX", ttl_ms):
                return Grant(owner)
            raise Busy(key)

Commands are tuples.  ``("SLEEP", ms)`` waits, ``("EVAL", script, keys, args)`` runs a ``Script`` at
the server, everything else goes to the server word by word.

Traps: a worker may be killed or paused between any two commands, and a generator is then simply
never resumed, so a ``finally`` that yields cleans nothing up.  Time comes from ``self.now`` (ns,
monotonic) and chance from ``self.random``: reading anything else makes a simulation unrepeatable.
Answers are the same on both sides: ``SET`` gives True or None, not "OK"; text is str, not bytes.
Python 3.8 must be able to run this folder: it is loaded by the target's interpreter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Generator, Mapping

    Command = tuple[Any, ...]
    Call = Callable[..., Any]
    Acquiring = Generator[Command, Any, "Grant"]
    Asking = Generator[Command, Any, None]

NS_PER_MS = 1_000_000


class Grant(NamedTuple):
    """What a successful acquire gives: whom the server knows as owner, and a fencing token."""

    owner: str
    token: int | None = None


class Busy(Exception):
    """Somebody else holds the lock: the server said so (a definite refusal)."""


class NotHeld(Exception):
    """The lock is not, or no longer, held by this owner: the server said so."""


class LinkLost(Exception):
    """No answer: refused, reset, closed or timed out.  The command may still take effect."""


class NotConnected(LinkLost):
    """The connection was refused: this command surely did not leave the client."""


class ServerError(Exception):
    """The server answered with an error (``OOM``, ``READONLY``, ``WRONGTYPE`` ...)."""


class Script(NamedTuple):
    """One server-side script, twice: what a real server runs and what the simulated one runs.

    ``python(call, keys, args)`` gets ``call(*command)`` as its ``redis.call``; a test compares
    both over random command sequences on a real server.
    """

    lua: str
    python: Callable[[Call, tuple[str, ...], tuple[Any, ...]], Any]


class Recipe:
    """Base of all recipes; one object per session of a worker.

    now: reading of a monotonic clock in ns.  rng: source of all chance.  options: free settings
    of the scenario (``poll_ms``: first waiting time between two tries, ``poll_ms_max``: longest).
    """

    scripts: ClassVar[tuple[Script, ...]] = ()
    """Every script it runs, for the test that compares the twins."""
    lease: ClassVar[str] = "ttl"
    """``ttl``, or ``none`` for a lock that never expires."""
    fencing: ClassVar[bool] = False
    renewable: ClassVar[bool] = True
    reads: ClassVar[bool] = False
    """Whether readers may share it (``acquire_read``); ``acquire`` is the writer's."""
    permits: ClassVar[bool] = False
    """Whether it is a semaphore (``acquire_permit``)."""

    def __init__(
        self, now: Callable[[], int], rng: random.Random, options: Mapping[str, Any] | None = None
    ) -> None:
        options = options or {}
        self.now = now
        self.random = rng
        self.poll_ms = float(options.get("poll_ms", 2.0))
        self.poll_ms_max = float(options.get("poll_ms_max", 50.0))

    def acquire(self, key: str, ttl_ms: int, timeout_ms: int) -> Acquiring:
        """Returns a Grant, or raises Busy after ``timeout_ms`` (0 = one try)."""
        raise NotImplementedError

    def acquire_read(self, key: str, ttl_ms: int, timeout_ms: int) -> Acquiring:
        """As ``acquire``, beside other readers."""
        raise NotImplementedError

    def acquire_permit(self, key: str, k: int, ttl_ms: int, timeout_ms: int) -> Acquiring:
        """As ``acquire``, one of ``k`` permits."""
        raise NotImplementedError

    def release(self, key: str, grant: Grant) -> Asking:
        """Raises NotHeld if the server says that the lock is no longer this owner's."""
        raise NotImplementedError

    def renew(self, key: str, grant: Grant, ttl_ms: int) -> Asking:
        """Makes the lease last ``ttl_ms`` from now; raises NotHeld as ``release`` does."""
        raise NotImplementedError

    def believes(self, key: str, grant: Grant) -> Generator[Command, Any, bool]:
        """Asks the server whether this owner still holds the lock."""
        held = yield "GET", key
        return bool(held == grant.owner)

    def fresh_owner(self) -> str:
        """A name for one acquisition that nobody else has (128 random bits)."""
        return f"{self.random.getrandbits(128):032x}"

    def poll(
        self,
        attempt: Callable[[], Generator[Command, Any, Grant | None]],
        key: str,
        timeout_ms: int,
    ) -> Acquiring:
        """Repeats ``attempt`` until it gives a Grant; Busy when the next try would be too late.

        Waits grow by half each time up to ``poll_ms_max``, each cut to a random 50-100 %, so that
        waiters do not march in step.
        """
        grant = yield from attempt()
        if grant is not None:
            return grant
        deadline_ns = self.now() + timeout_ms * NS_PER_MS
        wait_ms = self.poll_ms
        while True:
            jittered_ms = wait_ms * (0.5 + 0.5 * self.random.random())
            if self.now() + jittered_ms * NS_PER_MS > deadline_ns:
                raise Busy(f"{key} is held by somebody else")
            yield "SLEEP", jittered_ms
            grant = yield from attempt()
            if grant is not None:
                return grant
            wait_ms = min(wait_ms * 1.5, self.poll_ms_max)
