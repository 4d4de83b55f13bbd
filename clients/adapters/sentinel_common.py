"""What the redis-py adapters for Sentinel share: finding the primary, and waiting for replicas.

Discovery is the library's own (``redis.sentinel.Sentinel``): it asks one sentinel after another
with SENTINEL MASTERS, takes the first that knows a primary which is up, and asks again at each new
connection.  The address that it is told is good between servers only, so that of the worker's own
link to the same server takes its place; nothing else is changed.

Facts, read in redis-py 8.1's ``sentinel.py`` and tried:

- A connection that is open stays with its server, whoever is the primary by now.  A primary that
  was cut off from the sentinels, or has not been told yet, goes on serving its old clients.
- ``MasterNotFoundError`` is raised before anything is sent.  A primary that became a replica
  refuses writes; the library turns that ``ReadOnlyError`` into a ConnectionError.
- ``WAIT`` counts replicas for the connection's own last write, and answers at once on a fresh
  connection.  So the grant and WAIT go out together, in one pipeline.
- To sentinels RESP2 is spoken and the library's name is not told: they answer what they do not
  know with an error, and errors are what a fault's proof counts there (docs/extending.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool, SentinelManagedConnection

from clients.adapters import redis_common as common
from clients.worker.adapter import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SERVICE = "lockhavoc"
SENTINEL_PREFIX = "sentinel"


class Options(NamedTuple):
    """[client.options] of a scenario; the first five are as in ``redis_common.Options``.

    sentinel_timeout_ms: for each sentinel that is asked, connecting included.  wait_replicas: how
    many replicas must have a grant before it counts; one that too few have within wait_timeout_ms
    is given back.
    """

    client_retries: int = 0
    socket_timeout_ms: int | None = None
    connect_timeout_ms: int | None = None
    sleep_ms: int = 100
    thread_local: bool = True
    renew: str = "reacquire"
    sentinel_timeout_ms: int = 500
    wait_replicas: int = 0
    wait_timeout_ms: int = 500


class LinkConnection(SentinelManagedConnection):
    """A connection that bears the name of its link, and knows in whose epoch it was made."""

    def connect_to(self, address: tuple[str, int]) -> None:
        self.client_name = f"lockhavoc-{address[1]}"
        self.server = (self.connection_pool.sentinel_manager.epoch, address[1])
        super().connect_to(address)  # type: ignore[no-untyped-call]  # redis

    def read_response(self, *args: Any, **kwargs: Any) -> Any:
        reply = super().read_response(*args, **kwargs)
        self.connection_pool.sentinel_manager.replied(*self.server)
        return reply


class LinkSentinel(Sentinel):
    """redis-py's Sentinel over the worker's links.

    epoch: of the primary found last, one more for each fail-over.  epoch_of_reply and
    node_of_reply: of the primary that gave the last reply, as it was when that connection was made.
    """

    epoch = -1
    epoch_of_reply = -1
    node_of_reply = ""

    def __init__(self, nodes: Sequence[Mapping[str, Any]], options: Options, **kwargs: Any) -> None:
        limit_s = options.sentinel_timeout_ms / 1000
        asked = [node for node in nodes if str(node["name"]).startswith(SENTINEL_PREFIX)]
        if not asked:
            known = ", ".join(str(node["name"]) for node in nodes) or "none"
            raise Refused(f"no node is called {SENTINEL_PREFIX}N (nodes: {known})")
        super().__init__(  # type: ignore[no-untyped-call]  # redis
            [(node["host"], node["port"]) for node in asked],
            sentinel_kwargs={
                "socket_timeout": limit_s,
                "socket_connect_timeout": limit_s,
                "retry": Retry(NoBackoff(), 0),
                "protocol": 2,
                "driver_info": None,
            },
            **kwargs,
        )
        for at, node in enumerate(asked):
            client = self.sentinels[at]
            client.connection_pool.connection_kwargs["client_name"] = f"lockhavoc-{node['port']}"
        self._links = {str(node["address"]): node for node in nodes}
        self._names = {int(node["port"]): str(node["name"]) for node in nodes}

    def discover_master(self, service_name: str) -> tuple[str, int]:
        """The worker's own way to the server that the sentinels name."""
        host, port = super().discover_master(service_name)  # type: ignore[no-untyped-call]  # redis
        name = f"{host}:{port}"
        if name not in self._links:
            known = ", ".join(self._links)
            raise Refused(f"the sentinels name {name}, which is no node here (nodes: {known})")
        link = self._links[name]
        return link["host"], link["port"]

    def replied(self, epoch: int, port: int) -> None:
        """Takes note of who gave a reply: the server behind the link at ``port``."""
        self.epoch_of_reply, self.node_of_reply = epoch, self._names[port]

    def check_master_state(self, state: Mapping[str, Any], service_name: str) -> bool:
        good = super().check_master_state
        if not good(state, service_name):  # type: ignore[no-untyped-call]  # redis
            return False
        self.epoch = int(state["config-epoch"])
        return True


def sentinel_client(
    nodes: Sequence[Mapping[str, Any]],
    options: Options,
    retry: Retry,
    manager: type[LinkSentinel] = LinkSentinel,
) -> tuple[Any, LinkSentinel]:
    """A client of the primary, whoever that is, and the sentinels that it asks."""
    arguments: dict[str, Any] = {"retry": retry, "connection_class": LinkConnection}
    if options.socket_timeout_ms is not None:
        arguments["socket_timeout"] = options.socket_timeout_ms / 1000
    if options.connect_timeout_ms is not None:
        arguments["socket_connect_timeout"] = options.connect_timeout_ms / 1000
    sentinels = manager(nodes, options)
    client = sentinels.master_for(  # type: ignore[no-untyped-call]  # redis
        SERVICE, connection_pool_class=SentinelConnectionPool, **arguments
    )
    return client, sentinels


def grant_on_replicas(lock: Any, token: Any, options: Options, grant: Callable[[Any], Any]) -> Any:
    """What ``grant(pipeline)`` answers, if enough replicas have it; else the lock is given back.

    One that cannot be given back raises, so that nobody takes it for free.
    """
    pipe = lock.redis.pipeline(transaction=False)
    grant(pipe)
    pipe.wait(options.wait_replicas, options.wait_timeout_ms)
    granted, replicas = pipe.execute()
    if granted and replicas < options.wait_replicas:
        lock.lua_release(keys=[lock.name], args=[token], client=lock.redis)
        return None
    return granted


def read_options(given: Mapping[str, Any]) -> Options:
    """Checks the options; Refused names every one that is unknown or of the wrong kind."""
    options: Options = common.read_options(given, Options)
    return options
