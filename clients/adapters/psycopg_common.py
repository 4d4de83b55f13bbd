"""What the psycopg adapters share: options, the way to the server that takes writes, errors.

Facts, tried with psycopg 3.3 and PostgreSQL 17:

- psycopg has no lock of its own; what everybody writes by hand is one connection in autocommit, on
  which ``pg_advisory_lock`` is called.  The lock belongs to that connection's *session*.
- ``lock_timeout`` bounds the wait at the server and ends it with LockNotAvailable (55P03), which is
  an observation: somebody held the lock all the while.  Without it a wait has no end.  But it may
  be granted in that moment, and the session has it in spite of the error (psycopg_advisory).
- A deadlock (40P01), a cancelled or read-only statement and a refused connection granted nothing.
- A connection that breaks tells nothing.  The lock may have been granted in a session that still
  lives at the server, until that finds its client gone: unknown.
- ``pg_advisory_unlock`` answers false if this session does not hold the lock: an observation.
- Several endpoints: the first one whose server is read-write (``target_session_attrs``), asked for
  one at a time, because the name of the connection must tell the link that it came through.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg import errors

from clients.worker.adapter import Definite, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ERRORS: Mapping[type[BaseException], Definite] = {
    errors.LockNotAvailable: Definite("busy"),
    errors.DeadlockDetected: Definite(),  # the server chose this wait to be given up
    errors.QueryCanceled: Definite(),  # statement_timeout: it did not wait any longer
    errors.ReadOnlySqlTransaction: Definite(),  # refused before it did anything
    errors.InsufficientPrivilege: Definite(),
    errors.CannotConnectNow: Definite(),  # starting up or shutting down: no session was made
    errors.TooManyConnections: Definite(),
}


class Options(NamedTuple):
    """[client.options] of a scenario for psycopg; every one has an effect and a test.

    database, user: whom to connect as.  node: name of the server to use, None: the first one that
    takes writes.  connect_timeout_s: whole seconds (libpq's unit, at least 2).
    tcp_user_timeout_ms: how long sent data may stay unacknowledged, 0: as the system says.
    """

    database: str = "postgres"
    user: str = "postgres"
    node: str | None = None
    connect_timeout_s: int = 2
    tcp_user_timeout_ms: int = 0


KINDS: Mapping[str, type] = {"database": str, "user": str, "node": str}  # the rest: int


def read_options(given: Mapping[str, Any]) -> Options:
    """Checks the options; Refused names every one that is unknown or of the wrong kind."""
    problems = [
        f"option {name!r} is unknown (known: {', '.join(Options._fields)})"
        for name in given
        if name not in Options._fields
    ]
    for name, value in given.items():
        kind = KINDS.get(name, int)
        if name not in Options._fields or (name == "node" and value is None):
            continue
        if not isinstance(value, kind) or isinstance(value, bool):
            problems.append(f"option {name} is {value!r}; it must be {kind.__name__}")
        elif isinstance(value, int) and value < 0:
            problems.append(f"option {name} is {value!r}; it must not be negative")
    if problems:
        raise Refused("; ".join(problems))
    return Options(**given)


def connect(nodes: Sequence[Mapping[str, Any]], options: Options) -> Any:
    """A connection in autocommit to the first server that takes writes.

    Refused if there is none: no session was made, or none that could have locked anything.
    """
    failures = []
    known = known_nodes(nodes, options)
    for node in known:
        try:
            return psycopg.connect(**arguments(node, options, alone=len(known) == 1))
        except psycopg.OperationalError as error:
            failures.append(f"{node['name']}: {' '.join(str(error).split())}")
    raise Refused(f"cannot connect: {'; '.join(failures)}")


def known_nodes(nodes: Sequence[Mapping[str, Any]], options: Options) -> list[Mapping[str, Any]]:
    """The servers that may be talked to; Refused if there is none."""
    known = [node for node in nodes if options.node in (None, node["name"])]
    if not known:
        names = ", ".join(str(node["name"]) for node in nodes) or "none"
        raise Refused(f"option node is {options.node!r}; the nodes are: {names}")
    return known


def arguments(node: Mapping[str, Any], options: Options, *, alone: bool) -> dict[str, Any]:
    """Of ``psycopg.connect``.  alone: the only server, which is taken as it is, since whether it
    takes writes costs a question."""
    return {
        "host": node["host"],
        "port": node["port"],
        "dbname": options.database,
        "user": options.user,
        # The name by which a fault finds it at the server (docs/extending.md).
        "application_name": f"lockhavoc-{node['port']}",
        "connect_timeout": options.connect_timeout_s,
        "tcp_user_timeout": options.tcp_user_timeout_ms,
        "target_session_attrs": "any" if alone else "read-write",
        "gssencmode": "disable",  # two round trips less, on a loopback that encrypts nothing
        "sslmode": "disable",
        "autocommit": True,
        "prepare_threshold": None,  # a pooler knows nothing of prepared statements
    }


class OneSession:
    """What each adapter here is: one connection, which is one session at one server."""

    connection: Any = None

    def connect(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        """Makes ``connection``; Refused for wrong options."""
        self.connection = connect(nodes, read_options(options))
        self._names = {int(node["port"]): str(node["name"]) for node in nodes}

    def granted_by(self) -> list[str]:
        """The server that this session is with."""
        return [self._names[self.connection.info.port]]


def number_of(key: str) -> int:
    """The lock's number: 64 bits of a SHA-256, as a bigint.

    Narrower hashes (``hashtext`` has 32 bits) let strangers share a lock.
    """
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big", signed=True)


FENCE = "lockhavoc_fence"
DRAW = (
    f"SELECT nextval('{FENCE}'), pg_logical_emit_message(true, '{FENCE}', ''), "
    "set_config('synchronous_commit', 'on', true)"
)
MAKE_FENCE = f"CREATE SEQUENCE IF NOT EXISTS {FENCE}"


def make_fence(connection: Any) -> None:
    """Makes sure that the sequence of tokens is there; several may try at once."""
    try:
        connection.execute(MAKE_FENCE)
    except (errors.UniqueViolation, errors.DuplicateTable):
        pass  # somebody else made it between the look and the making
    except errors.ReadOnlySqlTransaction as error:
        raise Refused(f"cannot make the sequence of tokens: {error}") from error


def draw_token(connection: Any) -> int:
    """The next token, which no crash of the server can undo; ReadOnlySqlTransaction possible.

    The connection must be in autocommit and outside of a transaction.  A sequence is logged 32
    values ahead, by whoever draws the first of them, and on disk for sure only when *he* commits:
    until then those who draw the others get values that a crash gives away once more.  So each
    draw logs something of its own, which makes its commit wait for all that was logged before it.
    """
    return int(connection.execute(DRAW).fetchone()[0])


IN_TRANSACTION = (psycopg.pq.TransactionStatus.INTRANS, psycopg.pq.TransactionStatus.INERROR)
