"""Hypothesis strategies for histories as data (their behaviour need not be legal)."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from harness.core.history import Header, History, Op

# Tests that write files or import pyarrow on the first example have no honest deadline.
no_deadline = settings(deadline=None)

TEXT = st.text(
    alphabet=st.characters(codec="utf-8"), max_size=8
)  # any character that UTF-8 can hold, control characters and line separators included
INTEGERS = st.one_of(
    st.integers(-5, 5), st.integers(2**53 - 2, 2**53 + 2), st.integers(-(2**63), 2**63)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        INTEGERS,
        st.floats(allow_nan=False, allow_infinity=False),
        TEXT,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)


@st.composite
def ops(draw: st.DrawFn, index: int = 0, *, time_max: int = 2**62) -> Op:
    """One event with every field drawn."""
    return Op(
        index=index,
        time=draw(st.integers(0, time_max)),
        process=draw(st.one_of(st.integers(0, 9), st.just("nemesis"))),
        type=draw(st.sampled_from(["invoke", "ok", "fail", "info"])),
        f=draw(st.sampled_from(["acquire", "release", "cas", "start-partition", "odd f"])),
        key=draw(st.one_of(st.none(), TEXT)),
        value=draw(VALUES),
        error=draw(st.one_of(st.none(), st.sampled_from(["busy", "stale"]), TEXT)),
        extra=draw(st.one_of(st.just({}), st.dictionaries(TEXT, VALUES, max_size=3))),
    )


@st.composite
def histories(draw: st.DrawFn) -> History:
    """A list of events in no order that means anything, with a header."""
    count = draw(st.integers(0, 6))
    header = Header(
        name=draw(TEXT),
        seed=draw(st.one_of(st.none(), INTEGERS.filter(lambda n: abs(n) < 2**62))),
        ttl_ns=draw(st.one_of(st.none(), st.just(10_000_000_001))),
        k=draw(st.one_of(st.none(), st.just(3))),
        initial=draw(VALUES),
    )
    return History([draw(ops(index)) for index in range(count)], header)
