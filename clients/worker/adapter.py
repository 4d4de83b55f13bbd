"""The contract between the worker and a lock library: what an adapter file has to offer.

An adapter is one file that defines ``ADAPTER``, a class (or any callable) that makes the client.
This is a whole one::

    from clients.worker.adapter import Definite, Grant, Lease, Refused
    import mylock

    class MyLock:
        library = "mylock"
        distributions = ("mylock",)          # whose versions the run records
        lease = Lease("ttl")
        ERRORS = {mylock.NotOwner: Definite("not-held")}

        def open(self, nodes, options):
            self.client = mylock.connect(nodes[0]["host"], nodes[0]["port"])

        def acquire(self, key, ttl_ms, timeout_ms):
            lock = self.client.lock(key, ttl=ttl_ms / 1000)
            if not lock.acquire(wait=timeout_ms / 1000):
                raise Refused("busy")
            return Grant(owner=lock.id, handle=lock)

        def release(self, grant):
            grant.handle.release()

        def close(self):
            self.client.close()

    ADAPTER = MyLock

Every method may be a coroutine function instead; then all of them run on one event loop, which
also runs between requests (so background renewal works).

Traps.  An ``acquire`` that raises may hold the lock after all: what ``ERRORS`` does not name is
recorded as *unknown*, and that is the right answer when in doubt.  ``busy`` and ``not-held`` are
observations of the server's state; say them only if the server said so in this very call.
``close`` gives up connections and must not release locks behind the harness' back.
Python 3.8 must be able to run this file: it is loaded by the target's interpreter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Awaitable, Dict, Protocol, runtime_checkable  # noqa: UP035

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Lost = Callable[[str, str], None]  # (owner of the grant, why)

KINDS = ("ttl", "session", "connection", "none")


class Lease:
    """What ends a lock whose holder went silent.

    kind: ttl (a deadline at the server), session (the server's session timeout), connection (the
    connection's end), none (nothing: it stays).  ttl_ms: its length where the library fixes it;
    None where each acquire says it.
    """

    def __init__(self, kind: str, ttl_ms: int | None = None) -> None:
        if kind not in KINDS:
            raise ValueError(f"lease kind is {kind!r}; it must be one of {', '.join(KINDS)}")
        self.kind = kind
        self.ttl_ms = ttl_ms


class Grant:
    """A lock that was got.

    owner: what identifies this acquisition at the server (uuid, lease id, znode), for the record
    and for loss signals.  token: fencing token, greater at each grant of the key; None if the
    library has none.  handle: anything the adapter wants back in release, renew and believes.
    """

    __slots__ = ("handle", "owner", "token")

    def __init__(self, owner: str, token: int | None = None, handle: Any = None) -> None:
        self.owner = owner
        self.token = token
        self.handle = handle


class Definite:
    """Entry of an ``ERRORS`` table: after this exception the operation surely had no effect.

    word: ``busy`` or ``not-held`` if the exception is an observation of the server's state,
    else empty (the exception's text is recorded).
    """

    def __init__(self, word: str = "") -> None:
        self.word = word


class Refused(Exception):
    """Raise it when the operation surely had no effect; the text is a word or a reason.

    ``Refused("busy")``: somebody holds it.  ``Refused("not-held")``: the server says that the
    caller does not hold it.  ``Refused("cannot connect: ...")``: no observation, only a failure.
    """


class Unknown(Exception):
    """Raise it when the operation may or may not have taken effect and no exception says so."""


class LockClient(Protocol):
    """What every adapter has.  Methods may be plain or coroutine functions (all of one kind)."""

    library: str
    distributions: Sequence[str]
    lease: Lease
    ERRORS: Mapping[type[BaseException], Definite]

    def open(
        self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> Awaitable[None] | None:
        """Makes the client.  nodes: [{"name", "host", "port"}], and where servers are real also
        "address", by which they know each other; options: [client.options] of the scenario; refuse
        what you do not know (``Refused``).  May be called again after close."""

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Awaitable[Grant] | Grant:
        """Tries for at most ``timeout_ms`` (0: once, without waiting)."""

    def release(self, grant: Grant) -> Awaitable[None] | None: ...

    def close(self) -> Awaitable[None] | None: ...


@runtime_checkable
class Renewable(Protocol):
    """Optional power ``renew``: the lease can be made longer by hand."""

    def renew(self, grant: Grant, ttl_ms: int | None) -> Awaitable[None] | None: ...


@runtime_checkable
class Believing(Protocol):
    """Optional power ``believes``: the library can be asked whether it still holds the lock."""

    def believes(self, grant: Grant) -> Awaitable[bool] | bool: ...


@runtime_checkable
class Reading(Protocol):
    """Optional power ``read``: a lock may be shared by readers; ``acquire`` is the writer's."""

    def acquire_read(
        self, key: str, ttl_ms: int | None, timeout_ms: int
    ) -> Awaitable[Grant] | Grant: ...


@runtime_checkable
class Counting(Protocol):
    """Optional power ``permits``: a semaphore; all who ask for a key say the same ``k``."""

    def acquire_permit(
        self, key: str, k: int, ttl_ms: int | None, timeout_ms: int
    ) -> Awaitable[Grant] | Grant: ...


@runtime_checkable
class Granted(Protocol):
    """Optional: tells which servers granted the lock that was just got, by their names in
    ``open``; faults aimed at the ``granter`` hit them.  Not needed where there is one server."""

    def granted_by(self) -> Sequence[str]: ...


@runtime_checkable
class LossSignalling(Protocol):
    """Optional power ``signals-loss``: the library tells of a loss by itself."""

    def watch(self, lost: Lost) -> None:
        """Called once before ``open``; call ``lost(owner, why)`` from any thread."""


class Shares:
    """Optional, a base class: several users of one client can share one lock object per key.

    ``open`` ends with ``self.make_objects(make)``, where ``make(key, ttl_ms)`` is the library's
    lock object; ``acquire`` takes ``self.objects.get(key)`` and makes one of its own if that is
    None.  Then users that are threads, tasks or forked children have the same object.
    """

    _shared: tuple[Sequence[str], int | None] = ((), None)
    objects: Mapping[str, Any] = {}

    def share(self, keys: Sequence[str], ttl_ms: int | None) -> None:
        """Called before ``open``: users will share the lock objects of these keys."""
        self._shared = (keys, ttl_ms)

    def make_objects(self, make: Callable[[str, int | None], Any]) -> None:
        keys, ttl_ms = self._shared
        self.objects = {key: make(key, ttl_ms) for key in keys}


@runtime_checkable
class Pooled(Protocol):
    """Optional: the client can be one that draws a connection from a pool."""

    def draw_from(self, size: int, per: str, wait_ms: int) -> None:
        """Called before ``open``.  size: connections.  per: ``operation``, each call of the
        library draws one and gives it back; ``section``, a lock keeps the one that it was got
        on.  wait_ms: longest wait for one.  Refuse (``Refused``) what the library cannot do."""


def powers(client: object) -> list[str]:
    """Names of the optional powers that ``client`` has, in a fixed order.

    ``fenced`` is an attribute (``fenced = True``): its grants carry tokens.
    """
    found = [
        ("renew", isinstance(client, Renewable)),
        ("believes", isinstance(client, Believing)),
        ("fenced", getattr(client, "fenced", False) is True),
        ("signals-loss", isinstance(client, LossSignalling)),
        ("read", isinstance(client, Reading)),
        ("permits", isinstance(client, Counting)),
    ]
    return [name for name, has in found if has]


Message = Dict[str, Any]  # noqa: UP006 - evaluated at run time, also by Python 3.8
