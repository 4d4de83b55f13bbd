"""Locks that several may hold: what leases, beliefs and leaks mean for them."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.exclusion import Exclusion
from checkers.lease import Lease
from checkers.orphans import Orphans
from harness.core.clock import NS_PER_MS
from harness.core.history import Header, History, Op
from harness.core.protocols import CheckContext
from harness.core.result import Result, Valid

TTL_MS = 100


def history(*lines: tuple[Any, ...], k: int | None = None) -> History:
    """(process, f, hold, call ms, return ms, outcome or mode...) as operations, in time order."""
    events: list[tuple[float, int, Any]] = []
    for number, (process, f, hold, call, ret, *more) in enumerate(lines):
        mode = next((word for word in more if word in ("read", "write")), None)
        error = next((word for word in more if word in ("busy", "not-held")), None)
        value: dict[str, Any] = {"hold": hold}
        if f == "acquire":
            value |= {"ttl_ns": TTL_MS * NS_PER_MS} | ({"mode": mode} if mode else {})
        events.append((call, number, (process, "invoke", f, value, None)))
        if ret is not None:
            kind = "fail" if error else "ok"
            events.append((ret, number + 1000, (process, kind, f, {"hold": hold}, error)))
    end = max(event[0] for event in events) + 200  # so that the last ones believe for a while
    events += [(end, 9000, (99, "invoke", "read", {}, None))]
    events.sort(key=lambda event: event[:2])
    ops = [
        Op(index, round(at * NS_PER_MS), process, kind, f, "k0", value, error)
        for index, (at, _, (process, kind, f, value, error)) in enumerate(events)
    ]
    return History(ops, Header(ttl_ns=TTL_MS * NS_PER_MS, k=k))


def judge(checker: Any, *lines: tuple[Any, ...], k: int | None = None, **context: Any) -> Result:
    given = {"ttl_ns": TTL_MS * NS_PER_MS, "workers": 10, **context}
    result: Result = checker().check(history(*lines, k=k), CheckContext(k=k or 1, **given))
    return result


READER = (1, "acquire", "a", 0, 1, "read")


@pytest.mark.parametrize(
    ("call", "ret", "valid"), [(50, 60, Valid.FALSE), (50, 101, Valid.TRUE), (150, 151, Valid.TRUE)]
)
def test_a_writer_may_come_in_when_the_readers_lease_is_over(
    call: int, ret: int, valid: Valid
) -> None:
    writer = (2, "acquire", "b", call, ret, "write")
    assert judge(Lease, READER, writer).valid is valid


def test_readers_share_and_writers_do_not() -> None:
    second = (2, "acquire", "b", 5, 6, "read")
    assert judge(Lease, READER, second).valid is Valid.TRUE
    assert judge(Exclusion, READER, second).valid is Valid.TRUE
    writer = (2, "acquire", "b", 5, 6, "write")
    assert judge(Exclusion, READER, writer).valid is Valid.FALSE


def test_a_release_that_came_after_its_lease_proves_nothing() -> None:
    late = (1, "release", "a", 300, 301)
    writer = (2, "acquire", "b", 150, 151, "write")
    assert judge(Lease, READER, writer, late).valid is Valid.TRUE
    assert judge(Exclusion, READER, writer, late).valid is Valid.FALSE, "it believed on"


def test_a_reader_that_is_told_too_early_that_it_holds_nothing_has_lost_its_lock() -> None:
    assert judge(Lease, READER, (1, "release", "a", 50, 51, "not-held")).valid is Valid.FALSE
    assert judge(Lease, READER, (1, "release", "a", 50, 101, "not-held")).valid is Valid.TRUE


def test_a_renewal_makes_the_share_longer() -> None:
    renewed = (1, "renew", "a", 80, 81)
    writer = (2, "acquire", "b", 150, 151, "write")
    assert judge(Lease, READER, renewed, writer).valid is Valid.FALSE
    late = (2, "acquire", "b", 150, 181, "write")
    assert judge(Lease, READER, renewed, late).valid is Valid.TRUE


def permit(process: int, call: float, ret: float | None) -> tuple[Any, ...]:
    return (process, "acquire", f"h{process}", call, ret)


@pytest.mark.parametrize(("call", "valid"), [(50, Valid.FALSE), (150, Valid.TRUE)])
def test_one_permit_too_many_unless_a_lease_is_over(call: int, valid: Valid) -> None:
    lines = [permit(1, 0, 1), permit(2, 2, 3), permit(3, call, call + 1)]
    assert judge(Lease, *lines, k=2).valid is valid
    exclusion = judge(Exclusion, *lines, k=2)
    assert exclusion.valid is Valid.FALSE, "three believe either way"
    assert {str(a.side) for a in exclusion.anomalies} == {
        "service" if valid is Valid.FALSE else "client"
    }
    assert judge(Exclusion, *lines[:2], k=2).valid is Valid.TRUE


def refused(call: int, ret: int, **context: Any) -> Result:
    """k = 2: process 1 dies with a permit; 3 is refused while process 2 has the other."""
    lines = [
        permit(1, 0, 1), permit(2, 500, 501), (3, "acquire", "c", call, ret, "busy"),
        (2, "release", "h2", 790, 791),
    ]  # fmt: skip
    return judge(Orphans, *lines, k=2, **context)


def test_a_refusal_with_a_permit_left_is_a_leak() -> None:
    found = refused(720, 721)  # the lease of the dead and the slack are over at 601 ms
    assert found.valid is Valid.FALSE
    assert found.anomalies[0].kind == "permit-leaked"
    assert refused(590, 591).valid is Valid.TRUE, "the dead may still have it"


def test_who_waits_for_the_bound_beside_a_free_permit_shows_a_leak() -> None:
    lines = [permit(1, 0, 1), permit(2, 5000, 9000)]
    assert judge(Orphans, *lines, k=2, recovery_ms_max=3000).valid is Valid.FALSE
    assert judge(Orphans, *lines, k=2, recovery_ms_max=4500).valid is Valid.TRUE


def test_readers_are_not_in_each_others_way_but_writers_are() -> None:
    dead = (1, "acquire", "a", 0, 1, "read")
    reader = (2, "acquire", "b", 700, 701, "read")
    done = (2, "release", "b", 790, 791)
    busy_reader = (3, "acquire", "c", 720, 721, "read", "busy")
    busy_writer = (3, "acquire", "c", 720, 721, "write", "busy")
    assert judge(Orphans, dead, reader, busy_reader, done).valid is Valid.FALSE
    assert judge(Orphans, dead, reader, busy_writer, done).valid is Valid.TRUE
