"""From the exceptions of real lock libraries to a failure reason and code, without a mapping.

    failure_of(redis.exceptions.LockError("Unable to acquire lock ..."))   # Failure(reason, code)

Libraries: redis-py, python-redis-lock, etcd3, kazoo, psycopg, tooz, and the operating system's
errors.  Classes are told by the names along their ancestry, so no library is imported.  None means
that the exception is none of these: a fault of the program, which is not to be retried.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple


class Failure(NamedTuple):
    """What a context says about one failed attempt."""

    reason: str
    code: str | int | None = None


class RefusedAttempt(Exception):
    """For clients of their own: the attempt was refused, for this reason and code."""

    def __init__(self, reason: str, code: str | int | None = None) -> None:
        super().__init__(reason)
        self.failure = Failure(reason, code)


HELD = "lock is held by another client"
UNSENT = "connection refused"
UNKNOWN = "outcome unknown: the connection failed"
DENIED = "permission denied"
INVALID = "invalid argument"
EXPIRED = "lease expired"

# Most derived first; (top-level package, class name) -> reason.
_KNOWN: dict[tuple[str, str], str] = {
    ("redis", "LockNotOwnedError"): EXPIRED,
    ("redis", "LockError"): HELD,
    ("redis", "AuthenticationError"): DENIED,
    ("redis", "NoPermissionError"): DENIED,
    ("redis", "BusyLoadingError"): "loading the dataset",
    ("redis", "ReadOnlyError"): "read-only replica",
    ("redis", "OutOfMemoryError"): "out of memory",
    ("redis", "MaxConnectionsError"): "too many connections",
    ("redis", "TimeoutError"): UNKNOWN,
    ("redis", "ConnectionError"): UNKNOWN,
    ("redis", "ClusterDownError"): "quorum not available",
    ("redis", "DataError"): INVALID,
    ("redis", "ResponseError"): "answer of the server",
    (
        "redis_lock",
        "AlreadyAcquired",
    ): "outcome unknown: this client seems to hold the lock already",
    ("redis_lock", "NotAcquired"): EXPIRED,
    ("redis_lock", "NotExpirable"): INVALID,
    ("redis_lock", "InvalidTimeout"): INVALID,
    ("redis_lock", "TimeoutTooLarge"): INVALID,
    ("etcd3", "ConnectionTimeoutError"): UNKNOWN,
    ("etcd3", "ConnectionFailedError"): UNKNOWN,
    ("etcd3", "InternalServerError"): UNKNOWN,
    ("etcd3", "PreconditionFailedError"): HELD,
    ("kazoo", "LockTimeout"): HELD,
    ("kazoo", "SessionExpiredError"): EXPIRED,
    ("kazoo", "ConnectionLoss"): UNKNOWN,
    ("kazoo", "ConnectionClosedError"): UNKNOWN,
    ("kazoo", "OperationTimeoutError"): UNKNOWN,
    ("kazoo", "NoAuthError"): DENIED,
    ("kazoo", "AuthFailedError"): DENIED,
    ("kazoo", "BadArgumentsError"): INVALID,
    ("kazoo", "NodeExistsError"): HELD,
    ("kazoo", "KazooTimeoutError"): UNKNOWN,
    ("psycopg", "LockNotAvailable"): HELD,
    ("psycopg", "DeadlockDetected"): "deadlock detected",
    ("psycopg", "InsufficientPrivilege"): DENIED,
    ("psycopg", "InvalidPassword"): DENIED,
    ("psycopg", "InvalidAuthorizationSpecification"): DENIED,
    ("psycopg", "TooManyConnections"): "too many connections",
    ("psycopg", "CannotConnectNow"): "the server is starting up: connection refused",
    ("psycopg", "ConnectionTimeout"): "connection timed out",
    ("psycopg", "QueryCanceled"): UNKNOWN,
    ("psycopg", "SyntaxError"): INVALID,
    ("psycopg", "OperationalError"): UNKNOWN,
    ("psycopg", "InterfaceError"): UNKNOWN,
    ("tooz", "LockAcquireFailed"): HELD,
    ("tooz", "ToozConnectionError"): UNKNOWN,
    ("tooz", "OperationTimedOut"): UNKNOWN,
    ("tooz", "NotImplemented"): "not supported",
}
_SYSTEM: tuple[tuple[type[BaseException], str], ...] = (
    (ConnectionRefusedError, UNSENT),
    (ConnectionError, UNKNOWN),
    (asyncio.TimeoutError, UNKNOWN),
    (TimeoutError, UNKNOWN),
)
UNSENT_SIGNS = ("refused", "name or service not known", "no route to host", "error 111 ")


def failure_of(error: BaseException) -> Failure | None:
    """Reason and code of a library's exception; None if it is no failure of a lock attempt."""
    if isinstance(error, RefusedAttempt):
        return error.failure
    for kind in type(error).__mro__:
        reason = _KNOWN.get((kind.__module__.split(".")[0], kind.__name__))
        if reason is not None:
            return Failure(_told(reason, error), _code(error))
    for kind, reason in _SYSTEM:
        if isinstance(error, kind):
            return Failure(_told(reason, error), _code(error))
    return None


def _told(reason: str, error: BaseException) -> str:
    text = " ".join(str(error).split())[:500]
    if reason == UNKNOWN and any(sign in text.lower() for sign in UNSENT_SIGNS):
        reason = UNSENT  # it never left this machine, so nothing can have been granted
    if "authentication failed" in text.lower():
        reason = DENIED  # psycopg tells it by the text alone when connecting
    return f"{reason} ({text})" if text else reason


def _code(error: BaseException) -> str | int | None:
    state = getattr(error, "sqlstate", None)
    return state if isinstance(state, str) else None
