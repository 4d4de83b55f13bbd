"""The whole pipeline in virtual time: files of a run, endings, repeatability, exit codes."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness import plan as plans
from harness import store
from harness.cli import cli
from harness.core.errors import UserError
from harness.core.messages import PoolEvent
from harness.judge_run import judge_run
from harness.run import execute
from harness.scenario import load, parse

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = ROOT / "scenarios" / "sim" / "correct-lock.toml"


def invoke(*words: str) -> tuple[int, str]:
    """(exit code, stdout) of the command line, in this process."""
    result = CliRunner().invoke(cli, words, standalone_mode=False, catch_exceptions=False)
    return int(result.return_value or 0), result.stdout


def small(**changes: Any) -> dict[str, Any]:
    return {
        "name": "small",
        "description": "d",
        "claim": {"verdict": "holds", "why": "w"},
        "backend": {"name": "sim"},
        "client": {"library": "recipe-redis"},
        "workload": {"workers": 3, "ttl_ms": 500},
        "faults": [
            {"kind": "worker-pause", "when": "held", "start_ms": 300, "duration_ms": 100}
        ],
        "run": {"time_ms": 1500, "recovery_ms": 1000},
        **changes,
    }  # fmt: skip


def write_toml(path: Path, data: dict[str, Any]) -> Path:
    plan = plans.draw(parse(data), 1)
    file = path / "plan.json"
    file.write_bytes(plans.dump(plan))
    return file


def test_the_same_seed_gives_the_same_history_byte_by_byte(tmp_path: Path) -> None:
    scenario = load(SCENARIO)
    histories = []
    for name in ("a", "b"):
        report = execute(
            scenario, plans.draw(scenario, 3), source="", runtime="sim", store_dir=tmp_path / name,
            argv=[], replay=["x"], progress=lambda _: None,
        )  # fmt: skip
        histories.append((Path(report.run_dir) / "history.jsonl").read_bytes())
    assert histories[0] == histories[1]
    assert histories[0].count(b"\n") > 500


def test_the_command_prints_one_json_document_and_keeps_all_files(tmp_path: Path) -> None:
    code, out = invoke("run", str(SCENARIO), "--seed", "1", "--store", str(tmp_path), "--json")
    document = json.loads(out)
    assert code == 0
    assert document["verdict"] == "as-claimed"
    run_dir = Path(document["run_dir"])
    for name in ("plan.json", "env.json", "history.jsonl", "faults.jsonl", "resource.jsonl",
                 "results.json", "report.html", "report.txt", "summary.md",
                 "junit.xml"):  # fmt: skip
        assert (run_dir / name).stat().st_size > 0, name
    assert (tmp_path / "latest").resolve() == run_dir.resolve()
    assert "--seed 1" in " ".join(document["replay"])


def test_a_stored_plan_repeats_the_run(tmp_path: Path) -> None:
    _, out = invoke("run", str(SCENARIO), "--seed", "5", "--store", str(tmp_path), "--json")
    first = json.loads(out)
    plan = Path(first["run_dir"]) / "plan.json"
    _, out = invoke("run", str(plan), "--store", str(tmp_path / "again"), "--json")
    second = json.loads(out)
    a, b = (Path(r["run_dir"]) / "history.jsonl" for r in (first, second))
    assert a.read_bytes() == b.read_bytes()


def test_check_gives_the_verdict_of_the_run(tmp_path: Path) -> None:
    _, out = invoke("run", str(SCENARIO), "--seed", "1", "--store", str(tmp_path), "--json")
    first = json.loads(out)
    code, out = invoke("check", first["run_dir"], "--json")
    again = json.loads(out)
    assert code == 0
    assert again["results"] == first["results"]
    assert again["faults"] == first["faults"]


def test_a_run_that_was_cut_short_is_judged_as_far_as_it_got(tmp_path: Path) -> None:
    _, out = invoke("run", str(SCENARIO), "--seed", "1", "--store", str(tmp_path), "--json")
    run_dir = Path(json.loads(out)["run_dir"])
    (run_dir / "results.json").unlink()
    (run_dir / "resource.jsonl").unlink()
    history = run_dir / "history.jsonl"
    lines = history.read_bytes().splitlines(keepends=True)
    history.write_bytes(b"".join(lines[:200]) + lines[200][:20])
    report = judge_run(run_dir)
    assert report.torn
    assert report.ops == 199
    assert report.verdict == "harness-failure"
    assert not (run_dir / "results.json").exists(), "what the run did not finish is not made up"


@pytest.mark.parametrize(
    ("change", "code", "verdict"),
    [
        ({}, 0, "as-claimed"),
        ({"claim": {"verdict": "violation", "by": ["lease"], "why": "w"}}, 1, "canary-passed"),
        ({"faults": [{"kind": "worker-pause", "when": "renewing", "start_ms": 100}]}, 2, "unknown"),
        ({"workload": {"workers": 1, "ttl_ms": 500}}, 2, "unknown"),
        ({"claim": {"verdict": "may-fail", "why": "w"}}, 0, "as-claimed"),
        (
            {
                "faults": [
                    {"kind": "worker-pause", "when": "held", "start_ms": 300, "duration_ms": 900}
                ]
            },
            1,
            "violation",
        ),
    ],
)
def test_exit_codes(change: dict[str, Any], code: int, verdict: str, tmp_path: Path) -> None:
    plan = write_toml(tmp_path, small(**change))
    found, out = invoke("run", str(plan), "--store", str(tmp_path / "store"), "--json", "-q")
    assert (found, json.loads(out)["verdict"]) == (code, verdict)


def test_a_violation_wins_over_an_unknown_in_a_matrix(tmp_path: Path) -> None:
    (tmp_path / "u").mkdir()
    unknown = write_toml(tmp_path / "u", small(workload={"workers": 1, "ttl_ms": 500}))
    broken = write_toml(
        tmp_path, small(claim={"verdict": "violation", "by": ["lease"], "why": "w"})
    )
    code, out = invoke("run", str(unknown), str(broken), "--store", str(tmp_path / "s"), "-q")
    assert code == 1
    assert "0 of 2 as claimed" in out


def test_a_signal_ends_the_run_with_130_and_keeps_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness import interpreter

    take = interpreter.Interpreter._take
    taken = 0

    def impatient(self: interpreter.Interpreter, event: PoolEvent) -> None:
        nonlocal taken
        taken += 1
        if taken == 500:
            os.kill(os.getpid(), signal.SIGTERM)
        take(self, event)

    monkeypatch.setattr(interpreter.Interpreter, "_take", impatient)
    code, out = invoke("run", str(SCENARIO), "--seed", "1", "--store", str(tmp_path), "-q")
    assert code == 130
    assert "INTERRUPTED" in out
    history, _ = store.read_history((tmp_path / "latest").resolve())
    assert len(history) > 100


def test_a_library_that_is_not_simulated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'redis-py' does not run on backend 'sim'"):
        parse(small(client={"library": "redis-py"}))
    plan = write_toml(tmp_path, small(client={"library": "redis-py"}, backend={}))
    code, _ = invoke("run", str(plan), "--runtime", "sim", "--store", str(tmp_path / "s"), "-q")
    assert code == 254
