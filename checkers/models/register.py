"""Data: register with compare-and-set, key-value store, fenced resource.

    Cas(initial=None):  read, write, cas [from, to]
    Kv():               get, put, append on strings; every key starts as ""
    Store():            a write is accepted iff its token >= the greatest accepted so far

What a read saw is the value of its completion; ``{"value": v}`` stands for ``v``, and a cas may be
``{"from": u, "to": v}`` too.  A read of unknown outcome says nothing.  A refused cas says nothing,
unless its error is *mismatch* or the model was made with ``failed_cas_observes=True`` (recorded
etcd logs need that): then the value was not ``from`` at some moment of the call.

Trap: tokens may be greater than 2**53, so they must never pass through a float; a write without a
token is malformed for the fenced resource, and such a history is not judged.
"""

from __future__ import annotations

from typing import Any

from checkers.models.base import MISMATCH, RESETS, STALE, Model, freeze, integer, observed
from harness.core.errors import UserError
from harness.core.history import Interval, Op, Type

READ, WRITE, CAS, DIFFERS = "read", "write", "cas", "differs"
CAS_F = frozenset({READ, WRITE, CAS})
KV_F = frozenset({"get", "put", "append"})


def payload(event: Op | None) -> Any:
    """The bare value of an event: what stands under ``value`` if it is an object with that."""
    if event is None:
        return None
    value = event.value
    return value["value"] if type(value) is dict and "value" in value else value


class Cas(Model):
    """One register.  State: its value, frozen (a marker stands for null, which None cannot)."""

    name = "cas"

    def __init__(self, *, initial: Any = None, failed_cas_observes: bool = False) -> None:
        self.init = _held(initial)
        self.failed_cas_observes = failed_cas_observes

    def prepare(self, op: Interval) -> Any:
        invoke, done = op.invoke, op.complete
        f = invoke.f
        kind = "info" if done is None else done.type
        if f == READ:
            if kind != "ok" or done is None:
                return None
            seen = done.value
            if type(seen) is not int:  # the usual case is an integer
                seen = _held(payload(done))
            return READ, seen, seen
        value = invoke.value
        if f == WRITE:
            if kind == "fail":
                return None
            return WRITE, None, value if type(value) is int else _held(payload(invoke))
        if f != CAS:
            return None
        if kind == "fail":
            if not (self.failed_cas_observes or observed(op) == MISMATCH):
                return None
            f = DIFFERS
        else:
            f = CAS
        old, new = value if type(value) is list and len(value) == 2 else cas_pair(op)
        if type(old) is int and type(new) is int:
            return f, old, new
        return f, _held(old), _held(new)

    def watches(self, op: Any) -> bool:
        return op[0] in (READ, DIFFERS)

    def step(self, state: Any, op: Any) -> Any:
        f, old, new = op
        if f is WRITE:  # "is": prepare gives these very strings
            return new
        if f is DIFFERS:
            return state if state != old else None
        return new if state == old else None


def _held(value: Any) -> Any:
    if type(value) is int or type(value) is str:  # the usual ones, fast
        return value
    return ("null",) if value is None else freeze(value)


def cas_pair(op: Interval) -> tuple[Any, Any]:
    value = payload(op.invoke)
    if type(value) is list and len(value) == 2:
        return value[0], value[1]
    if isinstance(value, dict) and "from" in value and "to" in value:
        return value["from"], value["to"]
    if isinstance(value, tuple) and len(value) == 2:
        return value[0], value[1]
    raise UserError(
        f"cas at index {op.invoke.index}: value is {value!r}, it must be a pair [from, to]"
    )


class Kv(Model):
    """A string under each key.  State: the string, which only grows until the next put."""

    name = "kv"
    foresees = True
    init: Any = ""

    def prepare(self, op: Interval) -> Any:
        event, done = op.invoke, op.complete
        f, kind = event.f, "info" if done is None else done.type
        if f == "get":
            if kind != "ok" or done is None:
                return None
            event = done
        elif kind == "fail" or f not in KV_F:
            return None
        return f, event.value if type(event.value) is str else _text(event)

    def watches(self, op: Any) -> bool:
        return bool(op[0] == "get")

    def wants(self, op: Any) -> Any:
        if op[0] == "get":
            return op[1]
        return RESETS if op[0] == "put" else None

    def leads(self, state: Any, wanted: Any) -> bool:
        return bool(wanted.startswith(state))

    def step(self, state: Any, op: Any) -> Any:
        f, text = op
        if f == "get":
            return state if state == text else None
        return text if f == "put" else state + text


def _text(event: Op | None) -> str:
    value = payload(event)
    if type(value) is str:
        return value
    return "" if value is None else str(value)


class Store(Model):
    """A fenced resource.  State: the greatest token accepted, or () before the first.

    *stale* is a guard: some greater token was accepted before.
    """

    name = "store"
    init: Any = ()

    def prepare(self, op: Interval) -> Any:
        if op.invoke.f != "write":
            return None
        refused = op.outcome == Type.FAIL
        if refused and observed(op) != STALE:
            return None
        token = integer(op.field("token"))
        if token is None:
            raise UserError(
                f"write at index {op.invoke.index}: token is {op.field('token')!r}, a fenced "
                "resource needs an integer (is this history of an unfenced resource?)"
            )
        return refused, token

    def watches(self, op: Any) -> bool:
        return bool(op[0])

    def step(self, state: Any, op: Any) -> Any:
        refused, token = op
        newer = state != () and state > token
        if refused:
            return state if newer else None
        return None if newer else token
