"""Runs and histories as findings and as evidence of a case; words beside them count for nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from checkers.audit.kinds import KINDS
from checkers.audit.live.validation import PROVOKED_BY
from harness.cli import cli
from harness.core.errors import UserError
from harness.registries import FAULTS

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
SAMPLES = DATA / "audit"
SCENARIO = """\
name = "paused"
[claim]
verdict = "{claim}"
tolerates = {tolerates}
why = "a test"
[backend]
name = "sim"
[client]
library = "{library}"
[workload]
workers = 4
ttl_ms = 300
hold_ms = [5, 20]
acquire_timeout_ms = 2000
[resource]
mode = "{mode}"
[[faults]]
kind = "worker-pause"
target = "holder"
when = "held"
start_ms = [300, 500]
every_ms = [600, 700]
count = 5
duration_ms = [500, 600]
[[faults]]
kind = "worker-kill"
target = "holder"
when = "held"
start_ms = 4500
duration_ms = 500
[run]
time_ms = 7000
recovery_ms = 3000
"""


def invoke(*words: object) -> tuple[int, str]:
    ended = CliRunner().invoke(cli, ["audit", *map(str, words)], standalone_mode=False)
    if ended.exception is not None:
        raise ended.exception
    return int(ended.return_value), ended.output


def simulated(folder: Path, library: str, claim: str, tolerates: str = "[]") -> Path:
    path = folder / f"{library}.toml"
    mode = "fenced" if library.endswith("fenced") else "unfenced"
    words = {"library": library, "claim": claim, "tolerates": tolerates, "mode": mode}
    path.write_text(SCENARIO.format(**words))
    command = [
        "run",
        str(path),
        "--runtime",
        "sim",
        "--seed",
        "3",
        "--store",
        str(folder / "store"),
    ]
    ended = CliRunner().invoke(cli, command, standalone_mode=False)
    if ended.exception is not None:
        raise ended.exception
    assert ended.return_value == 0, ended.output
    return (folder / "store" / "paused" / "latest").resolve()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    return simulated(folder, "recipe-redis-fenced", "holds", '["exclusion", "belief"]')


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("broken")
    return simulated(folder, "broken-release-without-check", "violation")


def test_a_violation_of_a_run_is_a_finding_with_its_place_and_its_replay(broken: Path) -> None:
    code, said = invoke("history", broken, "--json")
    data = json.loads(said)
    assert code == 1
    assert data["verdict"] == "NOT READY TO CLOSE"
    found = [f for file in data["files"] for f in file["findings"]]
    assert {"A-RUN-1", "A-RUN-5"} & {f["rule"] for f in found}
    lines = (broken / "history.jsonl").read_text().splitlines()
    for finding in found:
        assert finding["replay"].startswith("lockhavoc run ")
        assert "--seed 3" in finding["replay"]
        named = json.loads(lines[finding["line"] - 1])["index"]
        events = finding["interleaving"][0].removeprefix("events ").split(" of ")[0]
        assert named in map(int, events.split(", "))


def test_what_a_run_shows_is_evidence_by_dimension(sound: Path) -> None:
    code, said = invoke(sound, "--json")
    data = json.loads(said)
    status = {name: row["status"] for name, row in data["dimensions"].items()}
    assert status["identity"] == status["fencing"] == status["recovery"] == "ok"
    assert status["lease"] == "gap", "the paused holder believed in a lease that was over"
    assert code == 1


def test_a_history_of_others_is_judged_by_what_is_in_it(tmp_path: Path) -> None:
    edn = "\n".join(
        f"{{:type :{kind}, :f :{f}, :value nil, :process {p}, :time {t}, :index {n}}}"
        for n, (kind, f, p, t) in enumerate(
            [
                ("invoke", "acquire", 0, 1), ("ok", "acquire", 0, 2),
                ("invoke", "acquire", 1, 3), ("ok", "acquire", 1, 4),
                ("invoke", "release", 0, 5), ("ok", "release", 0, 6),
            ]
        )
    )  # fmt: skip
    path = tmp_path / "history.edn"
    path.write_text(edn + "\n")
    code, said = invoke("history", path, "--json")
    assert code == 1
    (finding,) = json.loads(said)["files"][0]["findings"]
    assert finding["rule"] == "A-RUN-1"
    assert "--model mutex" in finding["replay"]
    code, said = invoke("history", DATA / "mutex-handover.valid.jsonl")
    assert code == 2, "a legal history proves identity and leaves the rest open"
    assert "identity       ok" in said


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("semaphore-three-of-two.invalid", "semaphore"),
        ("rwlock-writer-among-readers.invalid", "rwlock"),
        ("reentrant-released-too-early.invalid", "reentrant"),
        ("lease-early-takeover.invalid", "lease"),
        ("fenced-token-inversion.invalid", "fenced"),
    ],
)
def test_the_model_is_the_one_that_the_history_is_about(name: str, model: str) -> None:
    _, said = invoke("history", DATA / f"{name}.jsonl", "--json")
    replays = [f["replay"] for file in json.loads(said)["files"] for f in file["findings"]]
    assert replays
    assert all(f"--model {model}" in replay for replay in replays)


def test_a_legal_history_proves_no_recovery_and_no_fence(tmp_path: Path) -> None:
    _, said = invoke("history", DATA / "lease-expired-then-granted.valid.jsonl", "--json")
    status = {n: row["status"] for n, row in json.loads(said)["dimensions"].items()}
    assert status["recovery"] == status["fencing"] == "unknown"


def test_a_run_whose_results_were_edited_is_no_evidence(broken: Path, tmp_path: Path) -> None:
    path = broken / "results.json"
    kept = path.read_text()
    try:
        path.write_text(kept.replace('"valid": "false"', '"valid": "true"'))
        with pytest.raises(UserError, match="is not what the run's history gives"):
            invoke("history", broken)
    finally:
        path.write_text(kept)


def opened(folder: Path) -> Path:
    case = folder / "a.case"
    invoke("open", case, "--intent", "one at a time")
    return case


def test_a_validation_by_a_run_closes_a_finding_and_proves_dimensions(
    tmp_path: Path, sound: Path
) -> None:
    case = opened(tmp_path)
    invoke("add", case, SAMPLES / "a-id-1-plain-delete.faulty.py")
    code, _ = invoke("attach", case, sound, "--for", "A-ID-1")
    assert code == 1, "it shows a gap of its own: belief"
    code, said = invoke("close", case)
    assert code == 1
    assert "A-ID-1" not in said
    assert "A-RUN-2" in said
    for dimension in ("identity", "fencing", "recovery", "release_retry"):
        assert f"{dimension}: gap" not in said
        assert f"{dimension}: unknown" not in said
    assert invoke("show", case)[1].count("attach") == 1
    assert "entries, whole" in invoke("verify", case)[1]


def test_a_later_audit_needs_a_validation_of_its_own(tmp_path: Path, sound: Path) -> None:
    case = opened(tmp_path)
    invoke("attach", case, sound, "--for", "A-ID-1")
    invoke("add", case, SAMPLES / "a-id-1-plain-delete.faulty.py")
    assert "A-ID-1" in invoke("close", case)[1]


def test_a_violation_stays_until_an_entry_corrects_it(
    tmp_path: Path, broken: Path, sound: Path
) -> None:
    case = opened(tmp_path)
    invoke("add", case, SAMPLES / "a-id-1-plain-delete.corrected.py")
    invoke("attach", case, broken)
    invoke("attach", case, sound)
    assert "history.jsonl" in invoke("close", case)[1]
    before = invoke("close", case)[1].count("found, and no validation")
    invoke("attach", case, sound, "--corrects", 3)
    assert invoke("close", case)[1].count("found, and no validation") < before


@pytest.mark.parametrize(
    ("rule", "why"),
    [("A-CFG-1", "K13 needs one of"), ("A-NONE-1", "no such rule")],
)
def test_a_run_that_did_not_provoke_the_failure_validates_nothing(
    tmp_path: Path, sound: Path, rule: str, why: str
) -> None:
    with pytest.raises(UserError, match=why):
        invoke("attach", opened(tmp_path), sound, "--for", rule)


def test_a_canary_validates_nothing(tmp_path: Path, broken: Path) -> None:
    with pytest.raises(UserError, match="claims 'violation'"):
        invoke("attach", opened(tmp_path), broken, "--for", "A-ID-1")
    with pytest.raises(UserError, match="only a run validates"):
        invoke(
            "attach", opened(tmp_path / "b"), DATA / "mutex-handover.valid.jsonl", "--for", "A-ID-1"
        )


def test_faults_that_provoke_a_kind_exist() -> None:
    assert {name for names in PROVOKED_BY.values() for name in names} <= set(FAULTS.names())
    assert set(PROVOKED_BY) <= set(KINDS)
