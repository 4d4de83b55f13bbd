"""What the redis-py adapters share: options, the errors that are definite, provable refusals.

Facts, read in redis-py 8.1's ``lock.py``, ``retry.py`` and ``connection.py``:

- ``acquire`` polls ``SET NX PX``; False means that every attempt was *answered* nil, so ``busy``
  is an observation.  With client-level retries that is no longer so: a ``SET NX`` whose reply was
  lost is sent again and finds its own first success.  Such an answer is recorded as unknown here.
  The same holds for a release that is sent again and finds nothing to release.
- The library's own default is three retries; ours is 0, so that a lost reply is seen as one.
- ``LockNotOwnedError`` is the server's word (the script compared).  Plain ``LockError`` is raised
  locally, without asking (``release`` twice): definite, but no observation.  The synchronous Lock
  forgets its token *before* the release is sent, so after a lost reply it cannot be released.
- The lock turns seconds into ms with ``int(seconds * 1000)``, which loses a millisecond for
  1.001 and others; ``seconds_for`` finds a float that does not.
- A refused connection is definite: nothing was sent in this attempt, and earlier ones were
  answered.  It is recognised by the ConnectionRefusedError in the exception's context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from redis import connection, exceptions
from redis.backoff import AbstractBackoff

from clients.worker.adapter import Definite, Refused, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ERRORS: Mapping[type[BaseException], Definite] = {
    exceptions.LockNotOwnedError: Definite("not-held"),
    exceptions.LockError: Definite(),  # raised by the client alone, see above
    exceptions.ReadOnlyError: Definite(),  # a replica: refused before the first write
    exceptions.BusyLoadingError: Definite(),  # the server is reading its data: no command runs
    exceptions.AuthenticationError: Definite(),  # the connection was not opened
    exceptions.NoPermissionError: Definite(),  # refused before it ran
}

# What the two kinds of pools say; nothing was sent then.  Only late versions have a class for it.
POOL_IS_EMPTY = ("Too many connections", "No connection available.")

RETRY_DELAY_S_MAX = 0.5  # cap of the library's own default backoff


class Options(NamedTuple):
    """[client.options] of a scenario for redis-py; every one has an effect and a test.

    node: name of the server to use; the first one if None.  client_retries: how often the client
    sends a command again by itself after a network error.  socket_timeout_ms,
    connect_timeout_ms: None is the library's default (5 s since 8.0).  sleep_ms: pause between
    two tries of a waiting acquire.  thread_local: where the Lock keeps its token.
    renew: reacquire | extend (with the ttl as the new length).
    """

    node: str | None = None
    client_retries: int = 0
    socket_timeout_ms: int | None = None
    connect_timeout_ms: int | None = None
    sleep_ms: int = 100
    thread_local: bool = True
    renew: str = "reacquire"


KINDS: Mapping[str, type] = {"node": str, "thread_local": bool, "renew": str}  # the rest: int
OPTIONAL = ("node", "socket_timeout_ms", "connect_timeout_ms")


def read_options(given: Mapping[str, Any], table: Any = Options) -> Any:
    """Checks the options; Refused names every one that is unknown or of the wrong kind.

    table: a NamedTuple of all that there are, with their defaults; one of these is returned.
    """
    problems = [
        f"option {name!r} is unknown (known: {', '.join(table._fields)})"
        for name in given
        if name not in table._fields
    ]
    for name, value in given.items():
        if name not in table._fields or (name in OPTIONAL and value is None):
            continue
        kind = KINDS.get(name, int)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            problems.append(f"option {name} is {value!r}; it must be {kind.__name__}")
        elif isinstance(value, int) and value < 0:
            problems.append(f"option {name} is {value!r}; it must not be negative")
    if given.get("renew", "reacquire") not in ("reacquire", "extend"):
        problems.append(f"option renew is {given['renew']!r}; it must be reacquire or extend")
    if problems:
        raise Refused("; ".join(problems))
    return table(**given)


def choose_node(nodes: Sequence[Mapping[str, Any]], name: str | None) -> Mapping[str, Any]:
    """The server to lock on: redis-py's Lock knows one."""
    for node in nodes:
        if name is None or node["name"] == name:
            return node
    known = ", ".join(str(node["name"]) for node in nodes) or "none"
    raise Refused(f"option node is {name!r}; the nodes are: {known}")


def client_arguments(node: Mapping[str, Any], options: Options, retry: Any) -> dict[str, Any]:
    """Keyword arguments of ``redis.Redis``; what is not asked for keeps the library's default.

    The connection has a name by which a fault finds it at the server (docs/extending.md).
    """
    arguments = {"host": node["host"], "port": node["port"], "retry": retry}
    arguments["client_name"] = f"lockhavoc-{node['port']}"
    if options.socket_timeout_ms is not None:
        arguments["socket_timeout"] = options.socket_timeout_ms / 1000
    if options.connect_timeout_ms is not None:
        arguments["socket_connect_timeout"] = options.connect_timeout_ms / 1000
    return arguments


class Pooling:
    """Optional power of the blocking adapters: the client draws from a pool of so many connections.

    The library's own pool has no bound that anybody meets.  One with ``wait_ms`` 0 refuses at once
    (``ConnectionPool(max_connections=)``), else it lets callers wait (``BlockingConnectionPool``).
    """

    _size: int | None = None
    _wait_ms = 0
    client: Any

    def draw_from(self, size: int, per: str, wait_ms: int) -> None:
        if per != "operation":
            raise Refused(
                f"pool.per is {per!r}; redis-py draws a connection for each command: 'operation'"
            )
        self._size, self._wait_ms = size, wait_ms

    def make_client(self, kind: Any, arguments: Mapping[str, Any]) -> Any:
        """``kind(**arguments)``, over a pool of its own if one was asked for."""
        if self._size is None:
            return kind(**arguments)
        bound: dict[str, Any] = {"max_connections": self._size}
        pool: Any = connection.ConnectionPool
        if self._wait_ms:
            pool, bound["timeout"] = connection.BlockingConnectionPool, self._wait_ms / 1000
        return kind(connection_pool=pool(**bound, **arguments))

    def shut(self) -> None:
        """Closes the client, and its pool, which a client that was given one leaves alone."""
        self.client.close()
        if self._size is not None:
            self.client.connection_pool.disconnect()


class Resends(AbstractBackoff):
    """A backoff that counts: was any command of this client perhaps sent twice?

    redis-py copies the policy into each connection; all copies must count in one place.
    """

    def __init__(self) -> None:
        self.count = 0

    def __deepcopy__(self, memo: object) -> Resends:
        return self

    def compute(self, failures: int) -> float:
        """Seconds to wait before try number ``failures`` + 1 (doubles from 10 ms)."""
        self.count += 1
        return float(min(RETRY_DELAY_S_MAX, 0.01 * 2 ** (failures - 1)))


class Resent:
    """Makes outcomes honest around one library call: ``with Resent(resends): lock.acquire()``.

    If a command was sent again meanwhile, no refusal is definite any more.  If not, a refused
    connection is.
    """

    def __init__(self, resends: Resends) -> None:
        self._resends = resends

    def __enter__(self) -> None:
        self._before = self._resends.count

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        if self._resends.count != self._before:
            text = f"{type(error).__name__}: {error}"
            raise Unknown(f"a command was sent again by the client; then {text}") from error
        if isinstance(error, exceptions.ConnectionError) and was_refused(error):
            raise Refused(f"cannot connect: {error}") from error
        if isinstance(error, exceptions.ConnectionError) and str(error) in POOL_IS_EMPTY:
            raise Refused(f"no connection is left in the pool: {error}") from error
        if takes_no_writes(error):
            raise Refused(f"no write is taken: {error}") from error


def was_refused(error: BaseException) -> bool:
    """True if ``error`` was raised because a connect was refused (ECONNREFUSED).

    Only the exception right beneath it counts: deeper ones may be older troubles.
    """
    return isinstance(error.__cause__ or error.__context__, ConnectionRefusedError)


def owner_of(lock: Any) -> str:
    """The token of a Lock just acquired; another user of the same object may have taken it away."""
    token = lock.local.token
    return "" if token is None else str(token.decode())


def takes_no_writes(error: BaseException) -> bool:
    """True if the server refused a write before it did anything: it has too few replicas, or is
    one itself (which redis-py's Sentinel client says in other words)."""
    if isinstance(error.__context__, exceptions.ReadOnlyError):
        return isinstance(error, exceptions.ConnectionError)
    return isinstance(error, exceptions.ResponseError) and "NOREPLICAS" in str(error)


def seconds_for(milliseconds: int | None) -> float | None:
    """The float of seconds that the lock turns back into exactly ``milliseconds``."""
    if milliseconds is None:
        return None
    seconds = milliseconds / 1000
    while int(seconds * 1000) < milliseconds:
        seconds += seconds * 2**-52
    return seconds
