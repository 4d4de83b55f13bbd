"""Several users of one client in one process: what they share, and how each comes to it.

    door = Door(House(...), user=1)      # stands in for the client in a user's Session
    door.open(nodes, options)                      # the first user makes the client, others join it

``sharing``, told by the first ``open`` of a worker: users (threads | tasks | fork), together (how
many), share (connection: every acquire has a lock object of its own | object: one for each of
``keys`` for all, made with the lease ``ttl_ms``), and perhaps pool ({"size", "per", "wait_ms"}).

Traps.  ``close`` of one user is no end for the others: it comes after an outcome that nobody knows,
and then a program that goes on makes a new client.  So the client is given up; who opens next makes
another, the rest move there with their next acquire, and the last to leave closes the old one.
Standard library only, Python 3.8 or later.
"""

from __future__ import annotations

import contextlib
import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Make = Callable[[], Any]

BLOCKING_USERS = ("threads", "fork")
LOOP_USERS = ("tasks",)
FIELDS = ("users", "together", "share", "pool", "keys", "ttl_ms")
METHODS = ("open", "acquire", "release", "renew", "believes", "close")
ACQUIRES = ("acquire", "acquire_read", "acquire_permit")
ON_GRANT = ("release", "renew", "believes")


def is_async(client: Any) -> bool:
    """Whether its methods are coroutine functions."""
    return any(inspect.iscoroutinefunction(getattr(client, name, None)) for name in METHODS)


def offers(client: Any, *, on_loop: bool) -> dict[str, list[str]]:
    """What ``hello`` says of it: kinds of users that it can serve, and what they may share."""
    shares = [("object", hasattr(client, "share")), ("pool", hasattr(client, "draw_from"))]
    return {
        "users": list(LOOP_USERS if on_loop else BLOCKING_USERS),
        "shares": ["connection", *(name for name, has in shares if has)],
    }


def refusal(client: Any, sharing: Any, *, on_loop: bool) -> str | None:
    """Why these users cannot be served by this client; None if they can."""
    if not isinstance(sharing, dict) or set(sharing) - set(FIELDS):
        return f"sharing is {sharing!r}; it must be an object of {', '.join(FIELDS)}"
    can = offers(client, on_loop=on_loop)
    users, share = sharing.get("users"), sharing.get("share", "connection")
    if users not in can["users"]:
        kind = "asyncio" if on_loop else "blocking"
        return (
            f"users is {users!r}, and {client.library} is a library of {kind} calls; "
            f"its users can be {' or '.join(can['users'])}"
        )
    wanted = ["pool"] if sharing.get("pool") else []
    for what in [share, *wanted]:
        if what not in can["shares"]:
            return f"share is {what!r}, and with {client.library} users share {can['shares']}"
    return None


class House:
    """The client that users share now; a fresh one is made by who enters when there is none."""

    def __init__(self, make: Make, sample: Any, sharing: Mapping[str, Any], lock: Any) -> None:
        """sample: a client that says what the library can do and is never opened."""
        self.sharing, self.sample, self.lock = sharing, sample, lock
        self.client: Any = None
        self._make = make
        self._inside: dict[int, set[int]] = {}  # id of a client -> users that are with it
        self._tell: list[Callable[[str, str], None]] = []

    def fresh(self) -> Any:
        """A client that is not open yet, ready to be shared."""
        client = self._make()
        prepare(client, self.sharing)
        if self._tell:
            client.watch(self._lost)
        return client

    def tell(self, lost: Callable[[str, str], None]) -> None:
        """One more user who wants to hear of losses."""
        self._tell.append(lost)

    def joins(self, user: int, client: Any) -> Any:
        self._inside.setdefault(id(client), set()).add(user)
        return client

    def leaves(self, user: int, client: Any) -> bool:
        """True if nobody is with that client any more, so that it has to be closed."""
        inside = self._inside.get(id(client), set())
        inside.discard(user)
        if inside:
            return False
        self._inside.pop(id(client), None)
        return True

    def gives_up(self, client: Any) -> None:
        """Who opens next makes another."""
        if self.client is client:
            self.client = None

    def _lost(self, owner: str, why: str) -> None:
        for lost in self._tell:
            lost(owner, why)


def prepare(client: Any, sharing: Mapping[str, Any]) -> None:
    """Tells a client, before it is opened, what its users share."""
    if sharing.get("share") == "object":
        client.share(list(sharing.get("keys", ())), sharing.get("ttl_ms"))
    pool = sharing.get("pool")
    if pool:
        client.draw_from(int(pool["size"]), str(pool["per"]), int(pool["wait_ms"]))


class AnyDoor:
    """What both kinds of doors are: the shared client as one user's ``Session`` sees it."""

    _acquire: Any

    def __init__(self, house: House, user: int) -> None:
        self.house, self.user = house, user
        self.sharing = house.sharing
        self.client: Any = None
        self._held: dict[int, Any] = {}  # id of a grant -> the client that gave it

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.house.sample if self.client is None else self.client, name)
        if name in ACQUIRES:
            return partial(self._acquire, name)
        if name in ON_GRANT:
            return partial(self._on_grant, name)
        return self.house.tell if name == "watch" else found

    def _on_grant(self, name: str, grant: Any, *given: Any) -> Any:
        """release, renew, believes: asked of the client that gave the grant."""
        found = self._held.pop if name == "release" else self._held.get
        return getattr(found(id(grant), self.client), name)(grant, *given)

    def _moves(self) -> Any:
        """Goes to the client that the house has now; one that it leaves as the last, or None."""
        house, old = self.house, self.client
        if self._held or house.client is None or house.client is old:
            return None
        self.client = house.joins(self.user, house.client)
        return old if house.leaves(self.user, old) else None

    def _leaves(self) -> Any:
        """Gives its client up; that client if nobody is with it any more."""
        client, self.client = self.client, None
        self._held.clear()
        self.house.gives_up(client)
        return client if self.house.leaves(self.user, client) else None


class Door(AnyDoor):
    """For a client that blocks, and users that are threads."""

    def open(self, nodes: Sequence[Any], options: Mapping[str, Any]) -> None:
        with self.house.lock:
            if self.house.client is None:
                client = self.house.fresh()
                client.open(nodes, options)
                self.house.client = client
            self.client = self.house.joins(self.user, self.house.client)

    def close(self) -> None:
        with self.house.lock:
            left = self._leaves()
        if left is not None:
            left.close()

    def _acquire(self, name: str, *given: Any) -> Any:
        with self.house.lock:
            left = self._moves()
        if left is not None:
            with contextlib.suppress(Exception):  # it was given up already
                left.close()
        client = self.client
        grant = getattr(client, name)(*given)
        self._held[id(grant)] = client
        return grant


class LoopDoor(AnyDoor):
    """For a client whose methods are coroutine functions, and users that are tasks."""

    async def open(self, nodes: Sequence[Any], options: Mapping[str, Any]) -> None:
        async with self.house.lock:
            if self.house.client is None:
                client = self.house.fresh()
                await client.open(nodes, options)
                self.house.client = client
            self.client = self.house.joins(self.user, self.house.client)

    async def close(self) -> None:
        left = self._leaves()
        if left is not None:
            await left.close()

    async def _acquire(self, name: str, *given: Any) -> Any:
        left = self._moves()
        if left is not None:
            with contextlib.suppress(Exception):  # it was given up already
                await left.close()
        client = self.client
        grant = await getattr(client, name)(*given)
        self._held[id(grant)] = client
        return grant
