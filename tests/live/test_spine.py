"""The whole way, on real servers: scenario, faults, history, verdict, exit code."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from clients.broken.registry import CANARIES
from harness.core.result import Valid
from harness.scenario import parse
from tests.canaries.scenarios import canary_scenario, run_once
from tests.live.command import ROOT, documents, leftovers, lockhavoc, require

DEMO = sorted((ROOT / "scenarios" / "demo").glob("*.toml"))
RUNTIMES = [
    pytest.param("process", marks=pytest.mark.live),
    pytest.param("docker", marks=[pytest.mark.live, pytest.mark.docker]),
]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_demo_ends_as_claimed(runtime: str, tmp_path: Path) -> None:
    require(runtime)
    store = tmp_path / "store"
    words = [*map(str, DEMO), "--runtime", runtime, "--store", str(store), "--json", "-q"]
    done = lockhavoc("run", *words)
    runs = documents(done)
    assert [run["verdict"] for run in runs] == ["as-claimed"] * 3, done.stderr
    assert done.returncode == 0
    holds, stale, fenced = runs
    by_checker = {result["checker"]: result for result in stale["results"]}
    anomaly = by_checker["fencing"]["anomalies"][0]
    assert anomaly["side"] == "resource"
    assert len(anomaly["ops"]) >= 3
    assert anomaly["legal_if"]
    assert {r["checker"]: r["valid"] for r in holds["results"]}["exclusion"] == "true"
    fencing = next(r for r in fenced["results"] if r["checker"] == "fencing")
    assert fencing["valid"] == "true"
    assert fencing["stats"]["stale_refused"] >= 1, "the late write must have come and be refused"
    for run in runs:
        assert all(window["bit"] and window["healed"] for window in run["faults"])
        files = {path.name for path in Path(run["run_dir"]).iterdir()}
        assert files >= {
            "scenario.toml", "plan.json", "env.json", "history.jsonl", "faults.jsonl",
            "resource.jsonl", "results.json", "report.html", "report.txt", "summary.md",
            "junit.xml",
        }  # fmt: skip
        assert list((Path(run["run_dir"]) / "nodes").glob("*.log"))
    assert not leftovers(store)


@pytest.mark.live
def test_a_stored_run_is_judged_again_with_the_same_verdict(tmp_path: Path) -> None:
    require("process")
    store = tmp_path / "store"
    first = documents(
        lockhavoc("run", str(DEMO[1]), "--runtime", "process", "--store", str(store), "--json")
    )[0]
    again = lockhavoc("check", first["run_dir"], "--json", DOCKER_HOST="unix:///nowhere.sock")
    second = json.loads(again.stdout)
    assert again.returncode == 0, again.stderr
    assert second["verdict"] == first["verdict"]
    assert second["results"] == first["results"]


@pytest.mark.live
@pytest.mark.parametrize("name", sorted(CANARIES))
def test_each_canary_is_caught_live(name: str, tmp_path: Path) -> None:
    """In one of three runs: on a real server it is chance whether the moment that hurts comes."""
    require("process")
    scenario = canary_scenario(name, backend="redis-single", time_ms=8000)
    said = []
    for seed in (1, 2, 3):
        report = run_once(scenario, seed, tmp_path, runtime="process")
        if report.exit_code == 0:
            return
        said.append(f"{report.verdict}: {report.says}")
    pytest.fail("; ".join(said))


@pytest.mark.live
@pytest.mark.parametrize(
    "name", ["restart-with-data", "restart-without-data", "holder-pause-asyncio", "holder-muted"]
)
def test_scenarios_of_the_book_end_as_claimed(name: str, tmp_path: Path) -> None:
    require("process")
    path = ROOT / "scenarios" / "redis" / f"{name}.toml"
    words = ["--runtime", "process", "--store", str(tmp_path / "store"), "--json", "-q"]
    run = documents(lockhavoc("run", str(path), *words))[0]
    assert run["verdict"] == "as-claimed", run["says"]


@pytest.mark.live
def test_a_canary_that_passes_is_a_violation(tmp_path: Path) -> None:
    """The right lock under a canary's claim: the harness must not call that a success."""
    require("process")
    data = tomllib.loads(DEMO[0].read_text(encoding="utf-8"))
    data["claim"] = {"verdict": "violation", "by": ["lease"], "why": "a canary's claim"}
    data["client"] = {"library": "recipe-redis"}
    report = run_once(parse(data), 1, tmp_path, runtime="process")
    assert (report.verdict, report.exit_code) == ("canary-passed", 1)
    assert report.valid.safety != Valid.UNKNOWN
