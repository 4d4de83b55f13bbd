"""The points of an examination: hello, open, and requests that are wrong in themselves.

A point is a function of a ``Bench`` that returns if all is well, raises ``Wrong`` with the rule
that was broken, or ``Skipped`` where it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harness.conformance.bench import KINDS, POWERS, Bench, Skipped, must
from harness.conformance.talk import Silent, Wrong
from harness.core.history import OBSERVATIONS

Ask = Callable[[Bench], None]


class Point(NamedTuple):
    """A question.  ready: the workers are open before it is asked."""

    name: str
    says: str
    ask: Ask
    ready: bool = True


POINTS: list[Point] = []


def point(name: str, says: str, *, ready: bool = True) -> Callable[[Ask], Ask]:
    """Registers a function as a point; they are asked in the order of their definition."""

    def register(ask: Ask) -> Ask:
        POINTS.append(Point(name, says, ask, ready))
        return ask

    return register


@point("hello", "the first line is hello with protocol, library, versions, lease, powers",
       ready=False)  # fmt: skip
def hello(bench: Bench) -> None:
    for worker in bench.workers:
        worker.start()
    value: dict[str, Any] = bench.one.hello
    lease = value.get("lease")
    if value.get("protocol") != 1:
        raise Wrong(f"value.protocol is {value.get('protocol')!r}; it must be 1")
    if not isinstance(value.get("library"), str) or not value["library"]:
        raise Wrong(f"value.library is {value.get('library')!r}; it must be a name")
    if not isinstance(value.get("versions"), dict):
        raise Wrong(f"value.versions is {value.get('versions')!r}; it must be an object")
    if not isinstance(lease, dict) or lease.get("kind") not in KINDS:
        raise Wrong(f"value.lease is {lease!r}; its kind must be one of {', '.join(KINDS)}")
    ttl = lease.get("ttl_ms")
    if ttl is not None and (type(ttl) is not int or ttl < 1):
        raise Wrong(f"value.lease.ttl_ms is {ttl!r}; it must be null or a positive integer")
    powers = value.get("powers")
    if not isinstance(powers, list) or not set(powers) <= set(POWERS):
        raise Wrong(f"value.powers is {powers!r}; it must be a list of {', '.join(POWERS)}")


@point("open.first", "before open, every other request is a fail and no observation", ready=False)
def open_first(bench: Bench) -> None:
    asked = bench.one.ask("acquire", key="k", hold=bench.hold(), ttl_ms=1000, timeout_ms=0)
    must(asked, "fail")
    _no_observation(asked.error)


@point("open.option", "an option that it does not know is refused by its name", ready=False)
def unknown_option(bench: Bench) -> None:
    reply = bench.open(bench.one, no_such_option=1)
    must(reply, "fail")
    if "no_such_option" not in (reply.error or ""):
        raise Wrong("error does not name the option no_such_option")


@point("open", "open makes the client", ready=False)
def opens(bench: Bench) -> None:
    for worker in bench.workers:
        must(bench.open(worker), "ok")


@point("open.again", "close and open in one process make a new session, without the old holds")
def open_again(bench: Bench) -> None:
    key, hold, _ = bench.hold_lock(bench.one)
    bench.close(bench.one)
    must(bench.open(bench.one), "ok")
    reply = bench.one.ask("release", key=key, hold=hold)
    must(reply, "fail")
    _no_observation(reply.error)


@point("wrong.line", "a line that is no request gets the event log, no reply, and does no harm")
def wrong_line(bench: Bench) -> None:
    for line in (b"nonsense", b'{"id":0,"do":"close"}', b'["close"]', b'{"do":"close"}'):
        bench.one.send_line(line)
        try:
            bench.one.event("log", within_s=5)
        except Silent as error:
            raise Wrong(f"no event log for the line {line.decode()} ({error})") from error
    bench.hold_lock(bench.one)


@point("wrong.do", "an unknown do is a fail")
def wrong_do(bench: Bench) -> None:
    reply = bench.one.ask("explode")
    must(reply, "fail")
    _no_observation(reply.error)


@point("wrong.field", "a missing field is a fail that names it")
def wrong_field(bench: Bench) -> None:
    for do, field, fields in (
        ("acquire", "key", {"hold": bench.hold(), "timeout_ms": 0}),
        ("acquire", "hold", {"key": bench.key(), "timeout_ms": 0}),
        ("release", "hold", {"key": bench.key()}),
    ):
        reply = bench.one.ask(do, **fields)
        must(reply, "fail")
        if field not in (reply.error or ""):
            raise Wrong(f"error does not name the missing field {field} of {do}")


@point("wrong.power", "renew and believes without that power are a fail")
def wrong_power(bench: Bench) -> None:
    missing = [power for power in ("renew", "believes") if power not in bench.powers]
    if not missing:
        raise Skipped("it has both powers")
    key, hold, _ = bench.hold_lock(bench.one)
    for power in missing:
        reply = bench.one.ask(power, key=key, hold=hold, ttl_ms=1000)
        must(reply, "fail")
        _no_observation(reply.error)


def _no_observation(error: str | None) -> None:
    if error in OBSERVATIONS:
        raise Wrong(f"error is {error!r}, which is an observation; nobody asked a server")
