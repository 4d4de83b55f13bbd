"""What each request does: from a message to a library call, from its result to a reply.

A request is first *prepared* (checked, and turned into a call without arguments), then called and
timed by a driver (main.py has a blocking and an asyncio one), then *answered*.  So the stamps
``invoke`` and ``complete`` enclose the library call alone, and both drivers share all rules.

Outcomes: no exception: ok.  ``Refused`` or an exception in the adapter's ``ERRORS``: fail (surely
no effect).  Everything else, also a bug in the adapter: info (may have taken effect).

Traps: a request that is wrong in itself (unknown ``do``, missing field) is a ``fail`` too, since no
library call was made.  A release of a hold that has no grant here is a ``fail`` without the word
``not-held``: nobody asked the server.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from clients.worker.adapter import Grant, Refused, Unknown
from clients.worker.resource_client import ResourceClient
from clients.worker.users import is_async, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[[], Any]
    Finish = Callable[[Any], Any]

ERROR_CHARS_MAX = 500
now = time.monotonic_ns


class BadRequest(Exception):
    """The request cannot be carried out as it stands; the text says field, value and rule."""


class Session:
    """One client of the library, with the grants it has got.

    ``send`` delivers an event (a loss signal) to the harness from any thread.
    """

    def __init__(self, client: Any, send: Callable[[dict[str, Any]], None]) -> None:
        self.client = client
        self.is_open = False
        self._grants: dict[str, tuple[str, Grant]] = {}  # hold -> (key, grant)
        self._losses = Losses(send)
        self._watching = hasattr(client, "watch")
        self._resource: ResourceClient | None = None
        self._nodes: list[str] = []  # names of the servers that the client was opened with
        self._versions: dict[tuple[str, str | None], Any] = {}  # (key, hold) -> version last read
        self._does: dict[str, Callable[[dict[str, Any]], tuple[Call, Finish]]] = {
            "open": self._open,
            "acquire": self._acquire,
            "release": self._release,
            "renew": self._renew,
            "believes": self._believes,
            "write": self._write,
            "read": self._read,
            "close": self._close,
        }
        if self._watching:
            client.watch(self._losses.lost)

    def prepare(self, request: dict[str, Any]) -> tuple[Call, Finish]:
        """Checks a request; returns the call to time and what makes its value from the result."""
        do = request.get("do")
        handler = self._does.get(do) if isinstance(do, str) else None
        if handler is None:
            raise BadRequest(f"do is {do!r}; it must be one of {', '.join(self._does)}")
        if do not in ("open", "close") and not self.is_open:
            raise BadRequest(f"do is {do!r}, but the client is not open; send open first")
        if request.get("user") and getattr(self.client, "sharing", None) is None:
            raise BadRequest(f"user is {request['user']!r}, but this worker serves one user alone")
        return handler(request)

    def answer(
        self,
        request: dict[str, Any],
        times: tuple[int, int],
        result: Any,
        error: BaseException | None,
        finish: Finish,
    ) -> dict[str, Any]:
        """The reply; ``times`` are the stamps before and after the call."""
        reply: dict[str, Any] = {"id": request["id"], "type": "ok"}
        reply["invoke"], reply["complete"] = times
        if error is None:
            try:
                value = finish(result)
                if value is not None:
                    reply["value"] = value
                return reply
            except Exception as raised:  # an adapter that returned nonsense: nobody knows
                error = raised
        reply["type"], reply["error"] = classify(error, self.client.ERRORS)
        if reply["error"] == "not-held" and request["do"] == "release":
            self._forget(request["hold"])
        return reply

    def replied(self) -> None:
        """To be called after each reply went out: loss signals that overtook it go now."""
        if self._watching:
            self._losses.flush()

    # Each of these returns (call, finish); the call alone is timed.

    def _open(self, request: dict[str, Any]) -> tuple[Call, Finish]:
        if self.is_open:
            raise BadRequest("do is 'open', but the client is open already; send close first")
        given = _field(request, "options", dict, default={})
        self._check_sharing(given.get("sharing"))
        nodes = _field(given, "nodes", list, default=[])
        self._nodes = [str(node["name"]) for node in nodes]
        options = _field(given, "options", dict, default={})
        place = _field(given, "resource", dict, default=None)
        resource = None
        if place is not None:
            resource = ResourceClient(_field(place, "host", str), _field(place, "port", int))

        def finish(_: Any) -> None:
            self.is_open = True
            self._resource = resource

        return lambda: self.client.open(nodes, options), finish

    def _check_sharing(self, sharing: Any) -> None:
        if sharing is None or sharing == getattr(self.client, "sharing", None):
            return
        why = refusal(self.client, sharing, on_loop=is_async(self.client))
        raise BadRequest(why or "sharing is told by the first request of a worker, or by none")

    def _close(self, _: dict[str, Any]) -> tuple[Call, Finish]:
        if not self.is_open:
            return lambda: None, _nothing
        self.is_open = False
        self._grants.clear()
        self._losses.forget()
        self._versions.clear()
        if self._resource is not None:
            self._resource.close()
            self._resource = None
        return self.client.close, _nothing

    def _acquire(self, request: dict[str, Any]) -> tuple[Call, Finish]:
        key, hold = _field(request, "key", str), _field(request, "hold", str)
        ttl_ms = _field(request, "ttl_ms", int, default=None)
        timeout_ms = _field(request, "timeout_ms", int, default=0)
        if hold in self._grants:
            raise BadRequest(f"hold is {hold!r}, which was granted before; holds must be fresh")
        acquire = self._acquiring(request)

        def finish(grant: Any) -> dict[str, Any]:
            check_grant(grant)
            self._grants[hold] = (key, grant)
            if self._watching:
                self._losses.granted(grant.owner, key, hold)
            return {"owner": grant.owner, "token": grant.token, **self._granted_by()}

        return lambda: acquire(key, ttl_ms, timeout_ms), finish

    def _acquiring(self, request: dict[str, Any]) -> Any:
        """The library's call for the kind of lock that an acquire asks for."""
        mode = _field(request, "mode", str, default=None)
        k = _field(request, "k", int, default=None)
        if mode is not None and k is not None:
            raise BadRequest(f"mode is {mode!r} and k is {k}; an acquire has one of them at most")
        client = self.client
        if mode is not None:
            if mode != "read":
                raise BadRequest(f"mode is {mode!r}; it must be 'read' or left out")
            if not hasattr(client, "acquire_read"):
                raise BadRequest(f"mode is 'read', which {client.library} cannot do")
            return client.acquire_read
        if k is not None:
            if k < 1:
                raise BadRequest(f"k is {k}; it must be at least 1 permit")
            if not hasattr(client, "acquire_permit"):
                raise BadRequest(f"k is {k}, and {client.library} has no permits")
            return lambda key, ttl_ms, timeout_ms: client.acquire_permit(key, k, ttl_ms, timeout_ms)
        return client.acquire

    def _release(self, request: dict[str, Any]) -> tuple[Call, Finish]:
        hold, grant = self._granted(request)

        def finish(_: Any) -> None:
            # After an unknown outcome the grant stays, so that a release can be tried again.
            self._forget(hold)

        return lambda: self.client.release(grant), finish

    def _renew(self, request: dict[str, Any]) -> tuple[Call, Finish]:
        if not hasattr(self.client, "renew"):
            raise BadRequest(f"do is 'renew', which {self.client.library} cannot do")
        _, grant = self._granted(request)
        ttl_ms = _field(request, "ttl_ms", int, default=None)
        return lambda: self.client.renew(grant, ttl_ms), _nothing

    def _believes(self, request: dict[str, Any]) -> tuple[Call, Finish]:
        if not hasattr(self.client, "believes"):
            raise BadRequest(f"do is 'believes', which {self.client.library} cannot say")
        _, grant = self._granted(request)
        return lambda: self.client.believes(grant), bool

    def _write(self, request: dict[str, Any]) -> tuple[Call, Finish]:
        resource, key = self._resource_of(request), _field(request, "key", str)
        hold = _field(request, "hold", str, default=None)
        options = _field(request, "options", dict, default={})
        message = {
            "do": "write",
            "key": key,
            "hold": hold,
            "token": _field(request, "token", int, default=None),
            "value": request.get("value"),
            "expect": options.get("expect", self._versions.get((key, hold))),
        }

        def finish(reply: dict[str, Any]) -> dict[str, Any]:
            self._versions[key, hold] = reply.get("version")
            return {"version": reply.get("version"), "seq": reply.get("seq")}

        return lambda: _unless_refused(resource.ask(message)), finish

    def _read(self, request: dict[str, Any]) -> tuple[Call, Finish]:
        resource, key = self._resource_of(request), _field(request, "key", str)
        hold = _field(request, "hold", str, default=None)

        def finish(reply: dict[str, Any]) -> dict[str, Any]:
            self._versions[key, hold] = reply.get("version")
            return {"value": reply.get("value"), "version": reply.get("version")}

        return lambda: _unless_refused(resource.ask({"do": "read", "key": key})), finish

    def _forget(self, hold: str) -> None:
        key, grant = self._grants.pop(hold)
        self._versions.pop((key, hold), None)
        self._losses.released(grant.owner)

    def _granted_by(self) -> dict[str, Any]:
        """Names of the servers that granted, where that is known: {"nodes": [...]} or nothing."""
        told = getattr(self.client, "granted_by", None)
        nodes = (
            self._nodes if told is None and len(self._nodes) == 1 else list(told() if told else ())
        )
        return {"nodes": nodes} if nodes else {}

    def _granted(self, request: dict[str, Any]) -> tuple[str, Grant]:
        hold = _field(request, "hold", str)
        if hold not in self._grants:
            raise BadRequest(f"hold is {hold!r}, which has no grant in this worker")
        return hold, self._grants[hold][1]

    def _resource_of(self, request: dict[str, Any]) -> ResourceClient:
        if self._resource is None:
            raise BadRequest(f"do is {request['do']!r}, but open named no resource")
        return self._resource


class Losses:
    """Loss signals of the library, turned into events that name key and hold.

    The library may signal before ``acquire`` has returned its grant (or before that reply is
    out): such a signal waits until the grant is known and answered.
    """

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._known: dict[str, tuple[str, str]] = {}  # owner -> (key, hold)
        self._early: dict[str, dict[str, Any]] = {}  # owner -> event
        self._answered: set[str] = set()

    def lost(self, owner: str, why: str) -> None:
        """What an adapter's ``watch`` gets: the library says that ``owner``'s lock is gone."""
        event = {"event": "lost", "complete": now(), "error": why[:ERROR_CHARS_MAX]}
        with self._lock:
            if owner not in self._answered:
                self._early[owner] = event
                return
            key, hold = self._known[owner]
        self._send({**event, "key": key, "hold": hold})

    def granted(self, owner: str, key: str, hold: str) -> None:
        with self._lock:
            self._known[owner] = (key, hold)

    def released(self, owner: str) -> None:
        with self._lock:
            self._known.pop(owner, None)
            self._early.pop(owner, None)
            self._answered.discard(owner)

    def forget(self) -> None:
        with self._lock:
            self._known.clear()
            self._early.clear()
            self._answered.clear()

    def flush(self) -> None:
        """Marks all known grants as answered and sends what came too early."""
        with self._lock:
            fresh = self._known.keys() - self._answered
            self._answered |= fresh
            events = []
            for owner in fresh & self._early.keys():
                key, hold = self._known[owner]
                events.append({**self._early.pop(owner), "key": key, "hold": hold})
        for event in events:
            self._send(event)


def check_grant(grant: Any) -> None:
    """An adapter that returned something else may hold the lock all the same: unknown."""
    if not isinstance(grant, Grant):
        raise Unknown(f"adapter: acquire returned {grant!r} instead of a Grant")
    if not isinstance(grant.owner, str):
        raise Unknown(f"adapter: Grant.owner is {grant.owner!r}; it must be a str")
    if grant.token is not None and type(grant.token) is not int:
        raise Unknown(f"adapter: Grant.token is {grant.token!r}; it must be an int or None")


def classify(error: BaseException, table: Any) -> tuple[str, str]:
    """Outcome and error text of an exception; the nearest class in ``table`` decides."""
    if isinstance(error, Refused):
        return "fail", _short(str(error) or "refused")
    if isinstance(error, Unknown):
        return "info", _short(str(error) or "unknown")
    for kind in type(error).__mro__:
        if kind in table:
            return "fail", table[kind].word or describe(error)
    return "info", describe(error)


def describe(error: BaseException) -> str:
    """An exception in one bounded line: module.Class: text."""
    kind = type(error)
    place = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    text = str(error)
    return _short(f"{place}{kind.__qualname__}: {text}" if text else f"{place}{kind.__qualname__}")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= ERROR_CHARS_MAX else line[: ERROR_CHARS_MAX - 3] + "..."


def _unless_refused(reply: dict[str, Any]) -> dict[str, Any]:
    if not reply.get("ok"):
        raise Refused(str(reply.get("why", "refused without a reason")))
    return reply


def _nothing(_: Any) -> None:
    return None


_REQUIRED = object()


def _field(message: dict[str, Any], name: str, kind: type, default: Any = _REQUIRED) -> Any:
    value = message.get(name)
    if value is None:
        if default is _REQUIRED:
            raise BadRequest(f"{name} is missing; do {message.get('do')!r} needs it")
        return default
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadRequest(f"{name} is {value!r}; it must be {kind.__name__}")
    return value
