"""Plans: the same seed gives the same plan, and adding a fault shifts no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import plan as plans
from harness.core.errors import UserError
from harness.scenario import Scenario, parse

PAUSE = {
    "kind": "worker-pause", "when": "held", "start_ms": [100, 900], "duration_ms": [50, 5000],
    "every_ms": [10, 400], "count": 3,
}  # fmt: skip
KILL = {"kind": "worker-kill", "start_ms": [100, 900], "duration_ms": [50, 5000]}


def scenario(*faults: dict[str, Any]) -> Scenario:
    return parse(
        {
            "name": "x",
            "claim": {"verdict": "holds"},
            "client": {"library": "redis-py"},
            "faults": list(faults),
        }
    )


def test_the_same_seed_gives_the_same_plan() -> None:
    assert plans.draw(scenario(PAUSE), 7) == plans.draw(scenario(PAUSE), 7)
    assert plans.draw(scenario(PAUSE), 7) != plans.draw(scenario(PAUSE), 8)


def test_another_fault_shifts_no_choice_of_the_first() -> None:
    alone = plans.draw(scenario(PAUSE), 7).faults
    beside = plans.draw(scenario(PAUSE, KILL), 7).faults
    assert beside[: len(alone)] == alone


def test_values_stay_within_their_ranges() -> None:
    for seed in range(200):
        first, second, third = plans.draw(scenario(PAUSE), seed).faults
        assert 100 <= first.arm_ms <= 900
        assert 10 <= second.arm_ms <= 400
        assert all(50 <= step.duration_ms <= 5000 for step in (first, second, third))
        assert (second.after, third.after) == (first.id, second.id)


def test_of_a_mix_the_seed_picks_one_each_time() -> None:
    schedule = {"start_ms": 100, "every_ms": 100, "count": 50}
    parts = [{"kind": "jam", "when": "held"}, {"kind": "worker-kill", "target": "waiter"}]
    drawn = plans.draw(scenario({"mix": parts, **schedule}), 7).faults
    assert {(step.kind, step.target, step.when) for step in drawn} == {
        ("jam", "holder", "held"),
        ("worker-kill", "waiter", ""),
    }
    assert [step.after for step in drawn] == [None, *range(49)]


def test_a_stored_plan_is_itself_runnable(tmp_path: Path) -> None:
    mixed = {"mix": [{"kind": "jam", "params": {}}, {"kind": "sever", "when": "held"}]}
    before = plans.draw(scenario(PAUSE, KILL, mixed), 7)
    file = tmp_path / "plan.json"
    file.write_bytes(plans.dump(before))
    read_scenario, after = plans.load(file)
    assert after == before
    assert read_scenario == scenario(PAUSE, KILL, mixed)


@pytest.mark.parametrize("content", ["{}", "nonsense", '{"schema":"other/1","seed":1}'])
def test_what_is_no_plan_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(content)
    with pytest.raises(UserError):
        plans.load(file)
