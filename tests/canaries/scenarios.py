"""Scenarios of the canaries and of the correct lock, made from what is known of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clients.broken.libraries import canary
from harness import plan as plans
from harness.report.document import RunReport
from harness.run import execute
from harness.scenario import Scenario, parse


def canary_scenario(name: str, *, backend: str = "sim", time_ms: int = 6000) -> Scenario:
    """The scenario under which this canary must be caught by its checker."""
    facts = canary(name)
    return parse(
        {
            "name": f"canary-{name}",
            "description": facts.says,
            "claim": {"verdict": "violation", "by": [facts.checker], "why": facts.needs},
            "backend": {"name": backend},
            "client": {"library": name},
            "workload": dict(facts.workload),
            "resource": {"mode": facts.resource},
            "faults": [dict(fault) for fault in facts.faults],
            "run": {"time_ms": time_ms, "recovery_ms": 2000},
        }
    )


def correct_scenario(library: str, resource: str, faults: list[dict[str, Any]]) -> Scenario:
    """The correct lock under the same kinds of faults: nothing may be found."""
    return parse(
        {
            "name": "correct",
            "description": "the correct lock",
            "claim": {
                "verdict": "holds",
                "tolerates": ["exclusion"],
                "why": "a paused client outlives its lease; neither lock nor resource may break",
            },
            "backend": {"name": "sim"},
            "client": {"library": library},
            "workload": {
                "workers": 4,
                "ttl_ms": 300,
                "hold_ms": [10, 60],
                "idle_ms": [0, 20],
                "acquire_timeout_ms": 1500,
            },
            "resource": {"mode": resource},
            "faults": faults,
            "run": {"time_ms": 3000, "recovery_ms": 2000},
        }
    )


def run_once(scenario: Scenario, seed: int, store: Path, *, runtime: str = "sim") -> RunReport:
    """One run, quietly and without report files."""
    return execute(
        scenario,
        plans.draw(scenario, seed),
        source="",
        runtime=runtime,
        store_dir=store,
        argv=[],
        replay=["lockhavoc", "run", "SCENARIO", "--seed", str(seed)],
        progress=lambda _: None,
    )
