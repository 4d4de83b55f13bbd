"""kazoo's ``KazooClient.Lock``: an ephemeral sequential node, waiters in a queue, no renewal.

Facts, read in kazoo 2.11's ``recipe/lock.py``, ``client.py`` and ``protocol/connection.py``:

- The lock lives as long as the client's *session*.  The client pings by itself; it never ends a
  session on its own, it learns of the end from a server (state LOST).  SUSPENDED means that the
  connection is gone and the session may be.
- ``acquire`` that gives up (False, ``LockTimeout``) deletes its place in the queue and *swallows*
  any trouble in doing so.  So "busy" is an observation only if the connection stood all the time;
  otherwise its node may be in the queue still and become the holder's: unknown.
- A waiting ``acquire`` and every ``release`` are tried again for as long as there is no connection,
  also on a new session.  A ``release`` whose node is gone answers as one that removed it; that the
  session was lost since the grant is known by then, and recorded as ``not-held``.
- Without a wait (``timeout_ms`` 0) kazoo takes no deadline: such an acquire lasts until there is a
  connection.
- ``Lock.is_acquired`` stays True after a loss, so it is no belief that could be asked for; the
  listener is the library's own word.

A session cannot be named; the lock's ``identifier``, the data of its node, is what tells a fault
whose session it is: ``lockhavoc-<port>``, of the first endpoint that the client was given.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionClosedError, KazooException, LockTimeout, NoNodeError
from kazoo.protocol.states import KazooState

from clients.worker.adapter import Grant, Lease, Refused, Shares, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clients.worker.adapter import Definite, Lost

ROOT = "/lockhavoc/locks"
LOST = KazooState.LOST


class Options(NamedTuple):
    """[client.options] of a scenario for kazoo; every one has an effect and a test.

    session_ms: session time-out asked for; the server grants none below two of its ticks.
    connect_timeout_ms: how long ``open`` waits for a connection.  tell_at: the state at which a
    holder is told: LOST (the session is over) or SUSPENDED (it may be).  reconnect_ms_max: longest
    pause between two rounds of connecting; None is the library's own growth up to an hour.
    """

    session_ms: int = 2_000
    connect_timeout_ms: int = 10_000
    tell_at: str = KazooState.LOST
    reconnect_ms_max: int | None = 500


def read_options(given: Mapping[str, Any]) -> Options:
    """Checks the options; Refused names every one that is unknown or wrong."""
    problems = []
    for name, value in given.items():
        if name not in Options._fields:
            problems.append(f"option {name!r} is unknown (known: {', '.join(Options._fields)})")
        elif name == "tell_at":
            if value not in (KazooState.LOST, KazooState.SUSPENDED):
                problems.append(f"option tell_at is {value!r}; it must be LOST or SUSPENDED")
        elif value is None and name == "reconnect_ms_max":
            continue
        elif not isinstance(value, int) or isinstance(value, bool) or value < 1:
            problems.append(f"option {name} is {value!r}; it must be a number of ms from 1")
    if problems:
        raise Refused("; ".join(problems))
    return Options(**given)


class Held:
    """A lock that is asked for or was granted, and what became of its session."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.granted = self.told = False
        self.lost: str | None = None  # its node when a session was lost: that node is gone


class KazooLock(Shares):
    """``LockClient`` over one KazooClient that is given every server."""

    library = "kazoo"
    distributions = ("kazoo",)
    lease = Lease("session")
    # No exception of kazoo says what became of the requests before the one that failed.
    ERRORS: Mapping[type[BaseException], Definite] = {}

    def __init__(self) -> None:
        self.client: Any = None
        self._tell: Lost = lambda owner, why: None
        self._guard = threading.Lock()
        self._held: list[Held] = []
        self._breaks = 0  # how often the connection was lost

    def watch(self, lost: Lost) -> None:
        self._tell = lost

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        """The client begins at its own node and goes round from there."""
        self.options = read_options(options)
        own = next((i for i, node in enumerate(nodes) if node.get("own")), 0)
        ordered = [*nodes[own:], *nodes[:own]]
        self.name = f"lockhavoc-{nodes[0]['port']}"
        self._names = {int(node["port"]): str(node["name"]) for node in nodes}
        retry: dict[str, Any] = {"max_tries": -1}
        if self.options.reconnect_ms_max is not None:
            retry["max_delay"] = self.options.reconnect_ms_max / 1000
        self.client = KazooClient(
            hosts=",".join(f"{node['host']}:{node['port']}" for node in ordered),
            timeout=self.options.session_ms / 1000,
            randomize_hosts=False,
            connection_retry=retry,
        )
        self.client.add_listener(self._changed)
        try:
            self.client.start(timeout=self.options.connect_timeout_ms / 1000)
        except self.client.handler.timeout_exception as error:
            raise Refused(f"cannot connect: {error}") from error
        self.make_objects(self.make_lock)

    def make_lock(self, key: str, ttl_ms: int | None) -> Any:
        return self.client.Lock(f"{ROOT}/{key}", self.name)

    def granted_by(self) -> list[str]:
        """The server that the session is with now; kazoo tells it nowhere but at its socket."""
        socket = getattr(getattr(self.client, "_connection", None), "_socket", None)
        try:
            port = socket.getpeername()[1] if socket is not None else 0
        except OSError:  # it has just lost its connection
            port = 0
        return [self._names[port]] if port in self._names else []

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        """``ttl_ms`` means nothing to a lock of a session; see the option session_ms."""
        return self.take(self.objects.get(key) or self.make_lock(key, ttl_ms), timeout_ms)

    def take(self, lock: Any, timeout_ms: int) -> Grant:
        """Acquires one of kazoo's locks, whatever its kind."""
        held = Held(lock)
        with self._guard:
            self._held.append(held)
        try:
            self._wait(held.lock, timeout_ms)
            grant = self._granted(held)
            with self._guard:
                held.granted = True
                if held.lost == grant.owner:
                    raise Unknown("the session ended while the lock was granted")
        except BaseException:
            self._forget(held)
            raise
        return grant

    def _wait(self, lock: Any, timeout_ms: int) -> None:
        breaks = self._breaks
        try:
            if timeout_ms:
                granted = lock.acquire(timeout=timeout_ms / 1000)
            else:
                granted = lock.acquire(blocking=False)
        except LockTimeout:
            granted = False
        if granted:
            return
        if self._breaks != breaks:
            raise Unknown("gave up, but its node may be queued still: the connection was lost")
        if self.objects:
            # Whether another user of the object holds it is what the object thinks, and it thinks
            # so beyond the end of a session.
            raise Refused("gave up waiting for the lock object or for the lock")
        raise Refused("busy")

    def _granted(self, held: Held) -> Grant:
        return Grant(owner=held.lock.node, handle=held)

    def release(self, grant: Grant) -> None:
        held: Held = grant.handle
        held.lock.release()
        self._forget(held)
        if held.lost == grant.owner:
            raise Refused("not-held")

    def close(self) -> None:
        """Ends the session, as the library's manual asks for, and with it what it holds."""
        with self._guard:
            self._held.clear()
        if self.client is None:
            return
        # A connection that does not end in time is left; the session ends by itself.
        with contextlib.suppress(KazooException):
            self.client.stop()
        self.client.close()

    def _changed(self, state: str) -> None:
        """The library's word on its connection; from its own thread, so nothing here may block."""
        if state == KazooState.CONNECTED:
            return
        with self._guard:
            self._breaks += 1
            told = []
            for held in self._held:
                if state == LOST:
                    held.lost = held.lock.node
                if held.granted and not held.told and state in (LOST, self.options.tell_at):
                    held.told = True
                    told.append(held.lock.node)
        for owner in told:
            self._tell(owner, state)

    def _forget(self, held: Held) -> None:
        with self._guard:
            if held in self._held:
                self._held.remove(held)


def node_of(client: Any, lock: Any) -> Any:
    """Stat of the lock's own node; Unknown if it is gone already."""
    try:
        return client.get(f"{lock.path}/{lock.node}")[1]
    except NoNodeError as error:
        raise Unknown("the lock's node was gone right after the grant") from error
    except ConnectionClosedError as error:
        raise Unknown("the connection was closed right after the grant") from error


ADAPTER = KazooLock
