"""Several faults at once: side by side on different targets, one after the other on one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import plan as plans
from harness import store
from harness.core.protocols import FaultWindow
from harness.run import execute
from harness.scenario import parse


def windows(tmp_path: Path, faults: list[dict[str, Any]], **run_of: Any) -> list[FaultWindow]:
    """The faults of a run in virtual time, by the order of the plan."""
    scenario = parse(
        {
            "name": "two-at-once",
            "claim": {"verdict": "may-fail"},
            "backend": {"name": "sim"},
            "client": {"library": "recipe-redis"},
            "workload": {"workers": 4, "ttl_ms": 500},
            "faults": faults,
            "run": {"time_ms": 4000, "recovery_ms": 2000, **run_of},
        }
    )
    report = execute(
        scenario, plans.draw(scenario, 5), source="", runtime="sim", store_dir=tmp_path,
        argv=[], replay=["x"], progress=lambda _: None,
    )  # fmt: skip
    assert report.failures == []
    found = sorted(store.read_faults(Path(report.run_dir)), key=lambda window: window.id)
    assert [window.id for window in found] == list(range(len(faults)))
    for window in found:
        assert window.bit, window.says
        assert window.healed, window.says
    return found


def overlap_ns(first: FaultWindow, second: FaultWindow) -> int:
    assert first.end_ns is not None
    assert second.end_ns is not None
    return min(first.end_ns, second.end_ns) - max(first.start_ns, second.start_ns)


def fault(kind: str, target: str, start_ms: int, duration_ms: int, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "target": target, "start_ms": start_ms, "duration_ms": duration_ms} | more


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("worker-pause", "worker:0"), ("worker-pause", "worker:1")),
        (("worker-pause", "worker:0"), ("jam", "worker:1")),
        (("jam", "worker:0"), ("deafen", "worker:1")),
        (("sever", "worker:0"), ("read-only", "primary")),
        (("slow", "worker:0"), ("clock-skew", "primary")),
        (("worker-pause", "worker:2"), ("clock-jump", "primary")),
    ],
)
def test_two_faults_on_different_targets_act_at_the_same_time(
    tmp_path: Path, one: tuple[str, str], other: tuple[str, str]
) -> None:
    first, second = windows(tmp_path, [fault(*one, 300, 2_500), fault(*other, 400, 2_400)])
    assert overlap_ns(first, second) > 1_000_000_000
    assert set(first.targets).isdisjoint(second.targets)


def test_three_kinds_at_once_on_worker_link_and_server(tmp_path: Path) -> None:
    found = windows(
        tmp_path,
        [
            fault("worker-pause", "worker:0", 300, 2_500),
            fault("latency", "worker:1", 300, 2_500, params={"latency_ms": 20}),
            fault("clock-jump", "primary", 300, 2_500),
        ],
    )
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert overlap_ns(found[first], found[second]) > 1_000_000_000


def test_the_second_fault_on_a_target_waits_until_the_first_has_healed(tmp_path: Path) -> None:
    first, second = windows(
        tmp_path, [fault("jam", "worker:0", 300, 1_000), fault("sever", "worker:0", 400, 500)]
    )
    assert first.end_ns is not None
    assert second.start_ns >= first.end_ns


def test_a_flush_in_the_middle_of_a_pause_hits_its_moment(tmp_path: Path) -> None:
    first, second = windows(
        tmp_path,
        [
            fault("worker-pause", "holder", 300, 1_500, when="held"),
            fault("flush", "primary", 600, 10, when="held"),
        ],
    )
    assert second.when == "held"
    assert first.start_ns < second.start_ns
