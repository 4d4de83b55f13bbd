"""What other programs read: Perfetto, Porcupine's viewer, GitHub, badges, files for CI."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from harness import cli
from harness.report import trace as traces
from harness.report.badge import badge
from harness.report.document import Outcome
from harness.report.github import commands
from harness.report.timeline import timeline
from harness.report.trace import trace, window
from tests.harness.reports import SECRET, full, hostile
from tests.report.synthetic import Run, synthetic

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic(ops=300)


def events(run: Run) -> list[dict[str, Any]]:
    data = timeline(run.report, run.history, run.context)
    found: list[dict[str, Any]] = json.loads(trace(run.report, data))["traceEvents"]
    return found


def test_the_trace_has_every_operation_hold_fault_and_anomaly(run: Run) -> None:
    found = events(run)
    spans = [event for event in found if event["ph"] == "X"]
    ops = [e for e in spans if e["pid"] == traces.WORKERS and "event" in e["args"]]
    assert len(ops) == len(run.history.intervals())
    (fault,) = (event for event in spans if event["pid"] == traces.FAULTS)
    assert fault["ts"] == run.truth.pause_ns[0] / 1000
    assert fault["dur"] == (run.truth.pause_ns[1] - run.truth.pause_ns[0]) / 1000
    stale = [event for event in found if event["name"] == "STALE write accepted"]
    assert [event["ts"] for event in stale] == [run.truth.stale_ns / 1000]
    anomalies = [e for e in found if e["pid"] == traces.ANOMALIES and e["ph"] == "i"]
    assert len(anomalies) == sum(len(result.anomalies) for result in run.report.results)


def test_every_track_of_the_trace_has_a_name(run: Run) -> None:
    found = events(run)
    named = {(e["pid"], e["tid"]) for e in found if e["name"] == "thread_name"}
    used = {(e["pid"], e["tid"]) for e in found if e["ph"] == "X"}
    assert used <= named


def test_a_big_trace_keeps_what_is_around_the_worst(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = timeline(run.report, run.history, run.context)
    monkeypatch.setattr(traces, "REPORT_DETAIL_OPS_MAX", 50)
    first, last = window(data)
    assert last - first == 50
    shown = data.view.history.intervals()[first:last]
    assert any(op is data.marks[0].ops[-1] for op in shown)


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_a_badge_says_the_outcome(outcome: Outcome) -> None:
    root = ET.fromstring(badge(outcome, name="redis <lock>"))
    words = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert words[0] == "redis <lock>"
    assert words[1]
    assert ("claimed" in str(words[1])) == (outcome == "as-claimed")


def test_annotations_only_for_what_did_not_go_as_claimed() -> None:
    good, bad = full(), msgspec.structs.replace(full(), exit_code=1, verdict="violation")
    doubt = msgspec.structs.replace(full(), exit_code=2, verdict="unknown")
    path = Path("scenarios/a,b.toml")
    lines = list(commands([(path, good), (path, bad), (path, doubt)]))
    assert [line.split(" ")[0] for line in lines] == ["::error", "::warning"]
    assert lines[0].startswith("::error file=scenarios/a%2Cb.toml,title=VIOLATION%3A redis-holder")
    assert "stale" not in lines[0].split("::")[1]
    assert "w1 wrote to k0 with token 1" in lines[0]
    assert "%0Arepeat: lockhavoc run" in lines[0]


def test_hostile_strings_cannot_become_commands() -> None:
    (line,) = commands([(Path("a\n::error::b,c.toml"), hostile())])
    assert "\n" not in line
    assert "\r" not in line
    assert "\x1b" not in line
    assert SECRET not in line
    title = line.split("title=")[1].split("::")[0]
    assert "," not in title


def run_cli(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["lockhavoc", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(str(ended.value.code))


def test_a_campaign_writes_its_files_for_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    text = (ROOT / "scenarios/sim/correct-lock.toml").read_text(encoding="utf-8")
    wrong = tmp_path / "wrong.toml"
    claim = '[claim]\nverdict = "violation"\nby = ["lease"]\nwhy = "a test"\n'
    wrong.write_text(f"{text.split('[claim]')[0]}{claim}{after_claim(text)}", encoding="utf-8")
    summary, junit = tmp_path / "summary.md", tmp_path / "junit.xml"
    summary.write_text("before\n", encoding="utf-8")
    code = run_cli(
        monkeypatch, "run", str(ROOT / "scenarios/sim/correct-lock.toml"), str(wrong),
        "--seed", "1", "--store", str(tmp_path / "store"), "--summary", str(summary),
        "--junit", str(junit), "-q",
    )  # fmt: skip
    assert code == 1
    assert summary.read_text(encoding="utf-8").startswith("before\n### lockhavoc")
    assert len(ET.parse(junit).getroot()) == 2
    shown = capsys.readouterr()
    commands = [line for line in shown.err.splitlines() if line.startswith("::")]
    assert len(commands) == 1
    assert commands[0].startswith("::error file=")
    assert "::error" not in shown.out


def after_claim(text: str) -> str:
    """A scenario from the table after [claim] on."""
    rest = text.partition("[claim]")[2]
    return rest[rest.index("\n[") :]


def test_a_run_leaves_its_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = str(ROOT / "scenarios/sim/correct-lock.toml")
    assert run_cli(monkeypatch, "run", scenario, "--seed", "1", "--store", str(tmp_path), "-q") == 0
    latest = tmp_path / "latest"
    assert "as claimed" in (latest / "badge.svg").read_text(encoding="utf-8")
    assert json.loads((latest / "trace.json").read_bytes())["traceEvents"]
    assert json.loads((latest / "porcupine.json").read_bytes())["Partitions"]
    page = (latest / "report.html").read_text(encoding="utf-8")
    assert "It held as claimed. Tolerated: w" in page
    first = (latest / "report.html").read_bytes()
    assert run_cli(monkeypatch, "check", str(latest)) == 0
    assert (latest / "report.html").read_bytes() == first, "judged again, the page is the same"
