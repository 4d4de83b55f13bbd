"""The loop as a live workload under faults: judged by the checkers and by its log's monitors."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from clients.retry.monitor import monitor
from clients.retry.record import read_records
from clients.retry.replay import replay
from clients.retry.waiting import rules
from harness.core.clock import NS_PER_MS
from harness.core.result import Valid
from harness.scenario import parse
from tests.canaries.scenarios import run_once
from tests.live.command import ROOT, require

BOOK = sorted((ROOT / "scenarios" / "retry").glob("*.toml"))


def test_the_scenarios_are_those_that_the_documentation_names() -> None:
    assert [path.stem for path in BOOK] == ["pause", "restart", "sever"]
    for path in BOOK:
        assert parse(tomllib.loads(path.read_text())).client.library == "retry-loop"


@pytest.mark.live
def test_a_restart_leaves_nobody_stuck_and_makes_no_herd(tmp_path: Path) -> None:
    require("process")
    log = tmp_path / "retry.jsonl"
    data = tomllib.loads((ROOT / "scenarios" / "retry" / "restart.toml").read_text())
    data["client"]["options"] = {"log": str(log)}
    data["run"] = {"time_ms": 6000, "recovery_ms": 4000}
    report = run_once(parse(data), 1, tmp_path / "store", runtime="process")
    assert (report.verdict, report.exit_code) == ("as-claimed", 0), report.says
    judged = {result.checker: result for result in report.results}
    assert judged["liveness"].valid is Valid.TRUE
    assert judged["fairness"].valid is Valid.TRUE

    records = read_records(log)
    decisions = [record for record in records if record["kind"] == "decision"]
    assert any(r["context"]["failure_reason"].startswith("could not") for r in decisions)
    (lock,) = monitor(records)["locks"]
    assert lock["outcomes"]["acquired"] > 20
    assert lock["starved"] == []
    assert not lock["deadlock_review"]
    assert lock["largest_herd"] < data["workload"]["workers"]
    assert lock["attempts_per_grant"] < 8
    budget_ms = data["workload"]["acquire_timeout_ms"]
    for record in decisions:
        spent_ns = record["at_ns"] - record["began_ns"]
        assert spent_ns + record["delay_ns"] <= budget_ms * NS_PER_MS, "a budget is passed"
    again = replay(records, rules)
    assert (again["same"], again["different"], again["changed"]) == (len(decisions), 0, 0)
