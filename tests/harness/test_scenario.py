"""Scenario files: every problem at once, with its path and a hint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import UserError
from harness.scenario import json_schema, load, parse

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = sorted((ROOT / "scenarios").rglob("*.toml"))


def good(**changes: Any) -> dict[str, Any]:
    return {
        "name": "x",
        "claim": {"verdict": "holds"},
        "client": {"library": "redis-py"},
        **changes,
    }


def problems(data: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(UserError) as caught:
        parse(data)
    assert caught.value.exit_code == 254
    return caught.value.problems


def test_five_mistakes_are_listed_all_five(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(
        """
name = "Bad Name"
[claim]
verdict = "hold"
[client]
library = "redis-pi"
[workload]
ttl_ms = "1000"
[[faults]]
kind = "worker-pause"
perod = 5
"""
    )
    with pytest.raises(UserError) as caught:
        load(file)
    found = "\n".join(caught.value.problems)
    assert len(caught.value.problems) == 5, found
    assert "name: " in found
    assert "claim.verdict: " in found
    assert "client.library: unknown library 'redis-pi'; did you mean 'redis-py'?" in found
    assert "workload.ttl_ms: " in found
    assert "faults[0].perod: unknown key; " in found
    assert str(file) in str(caught.value)
    assert "5 problems" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"claim": {"verdict": "violation"}}, "claim.why: missing"),
        ({"claim": {"verdict": "holds", "by": ["lease"]}}, "claim.by: "),
        ({"claim": {"verdict": "holds", "tolerates": ["exclusion"]}}, "claim.why: missing"),
        (
            {"claim": {"verdict": "violation", "why": "w", "by": ["exclusoin"]}},
            "claim.by[0]: unknown checker 'exclusoin'; did you mean 'exclusion'?",
        ),
        ({"run": {"grant_ms": 1000}}, "run.grant_ms: 1000 is not above workload.ttl_ms = 1000"),
        ({"workload": {"ttl_ms": 100, "renew_every_ms": 100}}, "workload.renew_every_ms: 100"),
        ({"workload": {"workers": 2, "keys": 3}}, "workload.keys: 3 locks for 2 workers"),
        ({"workload": {"workers": True}}, "workload.workers: "),
        ({"workload": {"hold_ms": [20, 5]}}, "workload.hold_ms: the range runs backwards"),
        ({"resource": {"mode": "fenced"}}, "resource.mode: 'fenced' needs fencing tokens"),
        ({"backend": {"name": "redis"}}, "backend.name: unknown backend 'redis'"),
        ({"faults": [{"kind": "worker-pause", "start_ms": 99999}]}, "faults[0].start_ms: 99999"),
        ({"faults": [{"kind": "worker-pause", "target": "primary"}]}, "faults[0].target: "),
        (
            {
                "backend": {"name": "redlock5"},
                "faults": [{"kind": "node-kill", "target": "primary"}],
            },
            "faults[0].target: 'primary' names no node of backend 'redlock5': its five servers",
        ),
        (
            {
                "backend": {"name": "redlock5"},
                "faults": [{"kind": "jam", "target": "holder/primary"}],
            },
            "faults[0].target: 'holder/primary' names no node",
        ),
        (
            {"faults": [{"kind": "jam", "target": "holder/minority"}]},
            "faults[0].target: 'holder/minority' is nobody",
        ),
        (
            {"faults": [{"kind": "node-kill", "target": "node:redis1"}]},
            "faults[0].target: unknown node 'node:redis1'; did you mean 'node:redis'?",
        ),
        ({"faults": [{"kind": "jam", "params": {"no_ms": 1}}]}, "faults[0].params.no_ms"),
        ({"faults": [{"kind": "worker-pauze"}]}, "faults[0].kind: unknown fault 'worker-pauze'"),
        ({"faults": [{"target": "holder"}]}, "faults[0].kind: missing; name a fault"),
        ({"faults": [{"mix": []}]}, "faults[0].kind: missing; name a fault"),
        ({"faults": [{"mix": [{"kind": "jam"}, {"kind": "jamm"}]}]}, "faults[0].mix[1].kind: unk"),
        (
            {"faults": [{"mix": [{"kind": "jam"}], "target": "waiter"}]},
            "faults[0].target: stands beside a mix",
        ),
        ({"faults": [{"mix": [{"kind": "jam", "start_ms": 1}]}]}, "faults[0].mix[0].start_ms: "),
        ({"run": {"time_ms": 0}}, "run.time_ms: "),
    ],
)  # fmt: skip
def test_each_rule_names_its_field(change: dict[str, Any], expected: str) -> None:
    found = problems(good(**change))
    assert any(line.startswith(expected) for line in found), found


def test_a_good_scenario_has_defaults_and_a_stable_digest() -> None:
    scenario = parse(good())
    assert scenario.workload.hold_ms == (5, 20)
    assert scenario.digest() == parse(good()).digest()
    assert scenario.digest() == parse(good(run={"seed": 5})).digest()
    assert scenario.digest() != parse(good(workload={"workers": 5})).digest()


def test_bad_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such scenario file"):
        load(tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("name = [,]\n")
    with pytest.raises(UserError, match=r"not valid TOML.*line 1"):
        load(broken)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_every_scenario_of_the_book_is_valid_and_says_why(path: Path) -> None:
    scenario = load(path)
    assert scenario.claim.why
    assert scenario.description


def test_the_schema_names_its_dialect_and_every_key() -> None:
    schema = json_schema()
    assert schema["$schema"].endswith("2020-12/schema")
    assert set(schema["properties"]) >= {"name", "claim", "client", "faults", "run"}
