"""Answers that a client which is cut off cannot have got."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.errors import Errors
from harness.core.protocols import FaultWindow
from harness.core.result import Result, Valid
from tests.checkers.runs import MS, Run, context


def cut(kind: str, target: str, on: int, off: int) -> FaultWindow:
    return FaultWindow(
        id=on, kind=kind, targets=[target], start_ns=(on - 5) * MS, end_ns=(off + 5) * MS,
        bit=True, healed=True, on_ns=on * MS, off_ns=off * MS,
    )  # fmt: skip


def check(run: Run, *faults: FaultWindow, servers: tuple[str, ...] = ("redis",)) -> Result:
    return Errors().check(run.history(), context(ttl_ms=1000, faults=list(faults), servers=servers))


def asked(call: float, ret: float, **fields: Any) -> Run:
    return Run().op(0, "acquire", call, ret, **{"hold": "a", **fields})


BUSY = {"kind": "fail", "error": "busy"}


@pytest.mark.parametrize(
    "fault", [cut("node-kill", "redis", 100, 900), cut("sever", "w0-redis", 100, 900)]
)
def test_an_outage_is_no_contention(fault: FaultWindow) -> None:
    found = check(asked(200, 800, **BUSY), fault)
    assert found.valid is Valid.FALSE
    assert found.anomalies[0].kind == "answer-from-nowhere"


def test_an_honest_failure_is_fine() -> None:
    fault = cut("node-kill", "redis", 100, 900)
    assert check(asked(200, 800, kind="fail", error="no connection"), fault).valid is Valid.TRUE


def test_a_grant_or_a_release_from_nowhere_is_worse() -> None:
    fault = cut("jam", "w0-redis", 100, 900)
    assert check(asked(200, 800), fault).valid is Valid.FALSE
    run = asked(0, 1).op(0, "release", 200, 300, kind="fail", error="not-held", hold="a")
    assert check(run, fault).valid is Valid.FALSE


@pytest.mark.parametrize(("call", "ret"), [(90, 800), (200, 950), (100, 800), (200, 900)])
def test_an_operation_that_reaches_out_of_the_cut_is_left_alone(call: int, ret: int) -> None:
    found = check(asked(call, ret, **BUSY), cut("node-kill", "redis", 100, 900))
    assert found.valid is Valid.UNKNOWN
    assert found.stats["applies"] is False


def test_one_server_of_several_is_no_cut() -> None:
    one = cut("node-kill", "a", 100, 900)
    servers = ("a", "b")
    assert check(asked(200, 800, **BUSY), one, servers=servers).valid is Valid.UNKNOWN
    both = (one, cut("sever", "w0-b", 150, 900))
    assert check(asked(200, 800, **BUSY), *both, servers=servers).valid is Valid.FALSE
    assert check(asked(120, 800, **BUSY), *both, servers=servers).valid is Valid.UNKNOWN


def test_others_are_not_cut_off_by_a_fault_on_one_link() -> None:
    run = Run().op(1, "acquire", 200, 800, hold="a", **BUSY)
    assert check(run, cut("sever", "w0-redis", 100, 900)).valid is Valid.UNKNOWN


def test_a_fault_without_evidence_or_on_the_way_back_only_proves_nothing() -> None:
    fault = cut("node-kill", "redis", 100, 900)
    fault.bit = False
    assert check(asked(200, 800, **BUSY), fault).valid is Valid.UNKNOWN
    slow = cut("latency", "w0-redis", 100, 900)
    assert check(asked(200, 800, **BUSY), slow).valid is Valid.UNKNOWN


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 20), st.integers(0, 20)), max_size=5
    ),
    st.integers(0, 20),
    st.integers(0, 20),
)
def test_as_brute_force_says(spans: list[tuple[str, int, int]], one: int, other: int) -> None:
    """Cut off means: at every half millisecond of the operation each server is hit by one fault
    that lasts through all of it."""
    call, ret = sorted((one, other))
    faults = [
        cut("node-kill", server, min(x, y), max(x, y)) for server, x, y in spans if x != y
    ]  # fmt: skip
    for number, fault in enumerate(faults):
        fault.id = number
    inside = all(
        any(
            fault.targets == [server]
            and all((fault.on_ns or 0) < at < (fault.off_ns or 0) for at in _moments(call, ret))
            for fault in faults
        )
        for server in ("a", "b")
    )
    found = check(asked(call, ret, **BUSY), *faults, servers=("a", "b"))
    assert (found.valid is Valid.FALSE) == inside


def _moments(call: int, ret: int) -> list[int]:
    return [half * MS // 2 for half in range(2 * call, 2 * ret + 1)]
