"""Each deliberately broken lock is caught over 100 seeds; the correct one stays silent on 1,000.

The seeds run in virtual time.  ``LOCKHAVOC_CANARY_SEEDS`` and ``LOCKHAVOC_CORRECT_SEEDS`` change
their numbers.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from clients.broken.registry import CANARIES
from harness.core.result import Valid
from tests.canaries.scenarios import canary_scenario, correct_scenario, run_once

pytestmark = pytest.mark.slow  # many seeds

SEEDS = int(os.environ.get("LOCKHAVOC_CANARY_SEEDS", "100"))
CORRECT_SEEDS = int(os.environ.get("LOCKHAVOC_CORRECT_SEEDS", "1000"))
SHARDS = 4

PAUSE = {
    "kind": "worker-pause", "target": "holder", "when": "held", "start_ms": [100, 600],
    "every_ms": [50, 400], "count": 2, "duration_ms": [20, 700],
}  # fmt: skip
NEAR = {**PAUSE, "when": "near-expiry", "near_ms": 60, "count": 1}
KILL = {
    "kind": "worker-kill", "target": "any-worker", "start_ms": [100, 1500], "duration_ms": [50, 300]
}  # fmt: skip
JAM = {
    "kind": "jam", "target": "holder", "when": "held", "start_ms": [300, 2000],
    "duration_ms": [50, 600],
}  # fmt: skip
CUT = {
    "kind": "cut-reply", "target": "waiter", "when": "between-grant-and-reply",
    "start_ms": [200, 1500], "duration_ms": [20, 200],
}  # fmt: skip
SEVER = {**JAM, "kind": "sever"}
RESTART = {
    "kind": "node-restart", "target": "primary", "start_ms": [500, 2000], "duration_ms": [50, 400]
}  # fmt: skip
NODE_PAUSE = {**RESTART, "kind": "node-pause"}
MIXES: list[list[dict[str, Any]]] = [
    [PAUSE, KILL], [NEAR, JAM], [CUT], [SEVER], [RESTART], [NODE_PAUSE], [PAUSE, CUT], [KILL],
]  # fmt: skip


@pytest.mark.parametrize("name", sorted(CANARIES))
def test_each_canary_is_caught_by_its_checker_on_every_seed(name: str, tmp_path: Path) -> None:
    scenario = canary_scenario(name)
    missed = []
    for seed in range(SEEDS):
        report = run_once(scenario, seed, tmp_path)
        if report.exit_code != 0:
            missed.append((seed, report.verdict, report.says))
    assert not missed, f"{len(missed)} of {SEEDS} seeds: {missed[:3]}"


@pytest.mark.parametrize("shard", range(SHARDS))
def test_the_correct_lock_raises_no_alarm(shard: int, tmp_path: Path) -> None:
    alarms = []
    for seed in range(shard, CORRECT_SEEDS, SHARDS):
        mix = MIXES[(seed // SHARDS) % len(MIXES)]
        scenario = correct_scenario("recipe-redis-fenced", "fenced", mix)
        report = run_once(scenario, seed, tmp_path)
        wrong = [
            (r.checker, r.says)
            for r in report.results
            if r.valid == Valid.FALSE and r.checker != "exclusion"
        ]
        if wrong or report.failures:
            alarms.append((seed, [f["kind"] for f in mix], wrong, report.failures))
    assert not alarms, f"{len(alarms)} alarms: {alarms[:3]}"
