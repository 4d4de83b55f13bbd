"""``lockhavoc faults``: every cell is the fault's own answer, and nothing is started for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness import faults_table
from harness.cli import cli
from harness.core.errors import RefusedError, UserError
from harness.places import Here
from harness.plan import draw
from harness.registries import BACKENDS, FAULTS, SIM
from harness.run import execute
from harness.scenario import parse


def printed(*words: str) -> str:
    result = CliRunner().invoke(
        cli, ["faults", *words], standalone_mode=False, catch_exceptions=False
    )
    assert result.return_value == 0
    return result.stdout


def test_every_fault_has_a_cell_in_every_place() -> None:
    rows = faults_table.rows()
    places = [("sim", SIM)]
    places += [(runtime, name) for runtime in ("docker", "process") for name in BACKENDS]
    wanted = {(*place, fault) for place in places for fault in FAULTS}
    assert {(row.runtime, row.backend, row.fault) for row in rows} == wanted
    assert len(rows) == len(wanted)


def test_a_cell_is_the_answer_of_the_fault() -> None:
    for row in faults_table.rows(runtime="sim"):
        reason = FAULTS.load(row.fault)().can(Here(row.runtime, row.backend))
        assert row.why == (reason or "")


def test_the_json_document_says_whether_the_place_itself_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(faults_table, "cannot_start", lambda place: f"no {place.runtime} today")
    document = json.loads(printed("--runtime", "process", "--json"))
    assert [place["why"] for place in document["places"]] == ["no process today"] * len(
        BACKENDS.names()
    )
    assert {cell["runtime"] for cell in document["cells"]} == {"process"}
    assert all(cell["ok"] == (cell["why"] == "") for cell in document["cells"])


def test_the_text_names_every_refusal_once_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(faults_table, "cannot_start", lambda place: "")
    cells = faults_table.rows(runtime="sim")
    assert any(cell.why for cell in cells)
    assert not all(cell.why for cell in cells)
    text = printed("--runtime", "sim")
    for cell in cells:
        assert text.count(cell.why) == 1 or not cell.why
        line = next(line for line in text.splitlines() if line.strip().startswith(cell.fault + " "))
        assert ("no [" in line) == bool(cell.why)


def test_a_wrong_name_is_met_with_a_near_one() -> None:
    with pytest.raises(UserError, match=r"'redis-singel'.*did you mean 'redis-single'"):
        faults_table.rows(backend="redis-singel")


def test_a_place_that_does_not_exist_is_said_to_be_none() -> None:
    assert "does not run in the runtime" in printed(
        "--runtime", "sim", "--backend", "valkey-single"
    )


def test_a_scenario_with_a_refused_fault_ends_before_anything_is_made(tmp_path: Path) -> None:
    data = {
        "name": "refused",
        "claim": {"verdict": "holds"},
        "backend": {"name": SIM},
        "client": {"library": "recipe-redis"},
        "faults": [{"kind": "memory-pressure", "target": "primary"}],
    }
    scenario = parse(data)
    with pytest.raises(RefusedError, match="no bound on memory"):
        execute(
            scenario, draw(scenario, 1), source="", runtime=SIM, store_dir=tmp_path / "store",
            argv=[], replay=[], progress=lambda _: None,
        )  # fmt: skip
    assert not (tmp_path / "store").exists()
