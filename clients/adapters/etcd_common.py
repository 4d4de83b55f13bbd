"""What the etcd adapters share: options, whole seconds, and which refusals are definite.

Facts, read in the libraries (etcd-sdk-python 0.0.7, aetcd 1.0.0, python-etcd3 0.12.0):

- Their Lock is one key that exists or not, created by a transaction under a fresh lease; whoever
  finds it there watches for its end.  There is no queue.  ``acquire`` says False only after a last
  transaction that was *answered* "it exists", so ``busy`` is an observation.
- An acquire asks for a lease, tries the transaction, watches, and begins again.  Only a transaction
  without an answer can have taken the lock (``Attempt``); a lease that was not granted, or a watch
  that broke, leaves nothing but a lease that runs out.
- Nothing is sent again by the client: gRPC does so only if it knows that nothing was processed.
- ``refresh`` never raises for a lease that is gone; the answer says TTL 0.
- Leases are whole seconds, and the server may make them longer than was asked for.

Traps.  Without ``timeout_ms`` a call waits for ever for a server that is silent, as the libraries
have it.  gRPC shares connections between channels of one process and would wait up to two minutes
before it dials again; both are set otherwise here, so that a new session is a new connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from clients.worker.adapter import Refused, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RECONNECT_FIRST_MS = 100


class Options(NamedTuple):
    """[client.options] of a scenario for the etcd libraries; every one has an effect and a test.

    node: name of the one server to use; None: the worker's own (worker i has node i modulo their
    number).  timeout_ms: of each call; None is the libraries' default, none.  reconnect_ms_max:
    longest pause before a lost connection is tried again (gRPC's default is 120 s).
    """

    node: str | None = None
    timeout_ms: int | None = None
    reconnect_ms_max: int = 1000


def read_options(given: Mapping[str, Any], also: Sequence[str] = ()) -> Options:
    """Checks the options; Refused names every one that is unknown or of the wrong kind.

    also: names of options that the adapter has taken out for itself.
    """
    problems = [
        f"option {name!r} is unknown (known: {', '.join([*Options._fields, *also])})"
        for name in given
        if name not in Options._fields
    ]
    for name, value in given.items():
        if name not in Options._fields or (value is None and name != "reconnect_ms_max"):
            continue  # the first is reported already, the second means the default
        kind = str if name == "node" else int
        if not isinstance(value, kind) or isinstance(value, bool):
            problems.append(f"option {name} is {value!r}; it must be {kind.__name__}")
        elif isinstance(value, int) and value < 1:
            problems.append(f"option {name} is {value!r}; it must be at least 1")
    if problems:
        raise Refused("; ".join(problems))
    return Options(**given)


def choose_node(nodes: Sequence[Mapping[str, Any]], name: str | None) -> Mapping[str, Any]:
    """The one server to talk to: the named one, else the worker's own, else the first."""
    if not nodes:
        raise Refused("there are no nodes to lock on")
    if name is None:
        return next((node for node in nodes if node.get("own")), nodes[0])
    for node in nodes:
        if node["name"] == name:
            return node
    known = ", ".join(str(node["name"]) for node in nodes)
    raise Refused(f"option node is {name!r}; the nodes are: {known}")


def channel_options(options: Options) -> dict[str, int]:
    """Settings of the gRPC channel."""
    return {
        "grpc.initial_reconnect_backoff_ms": min(RECONNECT_FIRST_MS, options.reconnect_ms_max),
        "grpc.max_reconnect_backoff_ms": options.reconnect_ms_max,
        "grpc.use_local_subchannel_pool": 1,
        "grpc.enable_http_proxy": 0,  # the proxy of the environment is not for servers under test
    }


def seconds_of(timeout_ms: int | None) -> float | None:
    return None if timeout_ms is None else timeout_ms / 1000


def whole_seconds(ttl_ms: int | None) -> int:
    """A lease's length as etcd takes it; Refused if it cannot be that."""
    if ttl_ms is None:
        raise Refused("ttl_ms is missing; an etcd lock needs it")
    if ttl_ms % 1000 or ttl_ms < 1000:
        raise Refused(f"ttl_ms is {ttl_ms}; etcd leases are whole seconds: use a multiple of 1000")
    return ttl_ms // 1000


def check_length(asked_s: int, granted_s: int) -> None:
    """Refused if the server made the lease longer than the scenario counts on."""
    if granted_s != asked_s:
        raise Refused(
            f"ttl_ms is {asked_s * 1000}, but this server grants no lease shorter than "
            f"{granted_s * 1000} ms: use that, or a shorter heartbeat_ms of the backend"
        )


def same_length(seconds: int, ttl_ms: int | None) -> None:
    """Refused if a renewal asks for another length than the lease was made with."""
    if ttl_ms is not None and ttl_ms != seconds * 1000:
        raise Refused(f"ttl_ms is {ttl_ms}; a renewal gives an etcd lease its {seconds} s again")


def still_leased(ttl: int) -> None:
    """Refused("not-held") if the answer to a keep-alive says that the lease is gone."""
    if ttl <= 0:
        raise Refused("not-held")


class Attempt:
    """Which errors of one ``acquire`` leave the lock surely untaken::

        with attempt:
            lock.acquire()          # which calls the transaction through ``attempt``

    An error while no transaction is without an answer is a definite failure, no observation.
    """

    def __init__(self) -> None:
        self._open = False

    def watch(self, client: Any) -> None:
        """Lets each transaction of a blocking client go through here."""
        transaction = client.transaction

        def noted(*args: Any, **kwargs: Any) -> Any:
            self.sent()
            answer = transaction(*args, **kwargs)
            self.answered()
            return answer

        client.transaction = noted

    def sent(self) -> None:
        """A transaction goes out."""
        self._open = True

    def answered(self) -> None:
        """It was answered, whatever it said."""
        self._open = False

    def __enter__(self) -> None:
        self._open = False

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, (Refused, Unknown)):
            text = describe(error)
            if self._open:
                raise Unknown(f"no answer to the transaction that takes the lock: {text}") from None
            raise Refused(f"before the lock could be taken: {text}") from None


def describe(error: BaseException) -> str:
    """An error of these libraries in words; they often keep the reason in the one beneath."""
    beneath = error.__cause__ or error.__context__
    details = getattr(beneath, "details", None)
    reason = details() if callable(details) else None
    text = str(reason or error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
