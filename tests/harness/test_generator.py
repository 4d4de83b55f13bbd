"""The generator alone: whole lists of steps, no threads, no clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.generator import Completion, EachWorker, Generator, Section, SectionSpec, Step, draw

SPEC = SectionSpec(
    seed=1, keys=1, ttl_ms=1000, timeout_ms=500, hold_ns=(50, 50), idle_ns=(10, 10), writes=1
)


def walk(section: Generator, outcomes: list[tuple[str, bool]], took_ns: int = 5) -> list[Step]:
    """Simulates one worker: each step takes ``took_ns`` and ends as the list says."""
    steps, now_ns = [], 0
    for outcome, lost in outcomes:
        step, section = section.op(0, now_ns)
        if step is None:
            break
        steps.append(step)
        now_ns = max(now_ns, step.at_ns) + took_ns
        section = section.update(Completion(0, now_ns, step.do, outcome, token=7, lost=lost))
    return steps


def does(steps: list[Step]) -> list[str]:
    return [step.do for step in steps]


def test_a_section_acquires_works_writes_and_releases() -> None:
    steps = walk(Section.of(SPEC, worker=0), [("ok", False)] * 6)
    assert [(s.do, s.at_ns, s.key, s.hold) for s in steps] == [
        ("acquire", 10, "k0", "0-0"),
        ("write", 65, "r0", "0-0"),
        ("release", 70, "k0", "0-0"),
        ("acquire", 85, "k0", "0-1"),
        ("write", 140, "r0", "0-1"),
        ("release", 145, "k0", "0-1"),
    ]
    assert steps[1].token == 7


def test_without_a_resource_the_section_lasts_as_long() -> None:
    spec = SectionSpec(
        seed=1, keys=1, ttl_ms=1000, timeout_ms=500, hold_ns=(50, 50), idle_ns=(10, 10), writes=0
    )
    steps = walk(Section.of(spec, worker=0), [("ok", False)] * 3)
    assert [(s.do, s.at_ns) for s in steps] == [("acquire", 10), ("release", 65), ("acquire", 80)]


def test_a_refused_or_unknown_acquire_starts_a_new_section_with_a_fresh_hold() -> None:
    steps = walk(Section.of(SPEC, worker=0), [("fail", False), ("info", False), ("ok", False)])
    assert [(s.do, s.hold) for s in steps] == [
        ("acquire", "0-0"), ("acquire", "0-1"), ("acquire", "0-2"),
    ]  # fmt: skip


def test_renewals_come_while_working_and_a_lost_lock_is_not_written_under() -> None:
    spec = SectionSpec(
        seed=1, keys=1, ttl_ms=1, timeout_ms=0, hold_ns=(100, 100), idle_ns=(0, 0),
        renew_every_ns=30,
    )  # fmt: skip
    steps = walk(Section.of(spec, worker=0), [("ok", False)] * 6)
    assert does(steps) == ["acquire", "renew", "renew", "write", "release", "acquire"]
    lost = walk(Section.of(spec, worker=0), [("ok", False), ("fail", True), ("ok", False)])
    assert does(lost) == ["acquire", "renew", "acquire"]


def test_an_unknown_renewal_ends_the_section_with_a_release() -> None:
    spec = SectionSpec(
        seed=1, keys=1, ttl_ms=1, timeout_ms=0, hold_ns=(100, 100), idle_ns=(0, 0),
        renew_every_ns=30,
    )  # fmt: skip
    steps = walk(Section.of(spec, worker=0), [("ok", False), ("info", False), ("ok", False)])
    assert does(steps) == ["acquire", "renew", "release"]


def test_a_cas_resource_is_read_before_the_write() -> None:
    spec = SectionSpec(
        seed=1, keys=1, ttl_ms=1, timeout_ms=0, hold_ns=(1, 1), idle_ns=(0, 0), writes=2,
        read_first=True,
    )  # fmt: skip
    steps = walk(Section.of(spec, worker=0), [("ok", False)] * 5)
    assert does(steps) == ["acquire", "read", "write", "write", "release"]


def test_no_section_starts_after_the_time_but_a_begun_one_ends() -> None:
    steps = walk(Section.of(SPEC, worker=0, until_ns=20), [("ok", False)] * 9)
    assert does(steps) == ["acquire", "write", "release"]


def test_a_number_of_sections_is_kept_also_when_the_worker_dies() -> None:
    steps = walk(Section.of(SPEC, worker=0, sections=2), [("ok", False)] * 20)
    assert does(steps).count("acquire") == 2
    section: Section = Section.of(SPEC, worker=0, sections=1)
    for _ in range(3):
        section = section.update(Completion(0, 5, "died", "info"))
    assert section.op(0, 9)[0] is None


def test_each_worker_has_its_own_generator() -> None:
    both = EachWorker(tuple(Section.of(SPEC, worker=w) for w in range(2)))
    first, after = both.op(0, 0)
    second, _ = after.op(1, 0)
    assert first is not None
    assert second is not None
    assert (first.hold, second.hold) == ("0-0", "1-0")
    again, _ = both.op(0, 0)
    assert again == first, "a pure value: asking the old generator again changes nothing"


@given(st.integers(0, 2**40), st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_draws_stay_inside_their_span_and_depend_on_their_parts_alone(
    seed: int, part: int, low: int, width: int
) -> None:
    span = (low, low + width)
    assert span[0] <= draw(seed, part, span=span) <= span[1]
    assert draw(seed, part, span=span) == draw(seed, part, span=span)


def test_draws_are_spread_evenly() -> None:
    counts = [0] * 10
    for part in range(10_000):
        counts[draw(3, part, 1, span=(0, 9))] += 1
    assert min(counts) > 850
    assert max(counts) < 1150


def test_asking_while_an_operation_is_under_way_is_a_bug() -> None:
    _, section = Section.of(SPEC, worker=0).op(0, 0)
    with pytest.raises(AssertionError):
        section.op(0, 0)
