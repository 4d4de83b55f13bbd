"""The benchmark of aimed faults measures what it says: one situation, few seeds, virtual time."""

from __future__ import annotations

from benchmarks.aimed_vs_blind import CASES, FAULTS_MAX, measure, scenario_of


def test_an_aimed_fault_is_enough_where_blind_ones_are_not() -> None:
    case = next(iter(CASES))
    aimed = [measure(case, seed, aimed=True, runtime="sim") for seed in (1, 2)]
    assert [one["faults"] for one in aimed] == [1, 1]
    blind = [measure(case, seed, aimed=False, runtime="sim") for seed in (1, 2)]
    assert all(one["faults"] is None or one["faults"] > 1 for one in blind)


def test_both_ways_differ_in_nothing_but_the_aim() -> None:
    for case in CASES:
        aimed, blind = (scenario_of(case, aimed=way, runtime="sim") for way in (True, False))
        assert aimed.workload == blind.workload
        (one,), (other,) = aimed.faults, blind.faults
        assert one.count == other.count == FAULTS_MAX
        assert one.kind == other.kind
        assert (one.duration_ms, one.start_ms, one.every_ms) == (
            other.duration_ms,
            other.start_ms,
            other.every_ms,
        )
        assert one.when
        assert not other.when
