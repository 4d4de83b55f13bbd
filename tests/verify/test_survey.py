"""The survey: its data, its page, and taking it up again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli import cli
from harness.core.errors import UserError
from harness.registries import LIBRARIES
from harness.verify.document import Cell, Document, Loss
from harness.verify.survey import (
    Survey,
    add,
    known,
    load_survey,
    missing,
    outcome,
    page_of,
    surveyed_libraries,
)

ROOT = Path(__file__).resolve().parents[2]


def cell(situation: str = "holder-pause", **fields: Any) -> Cell:
    given: dict[str, Any] = {
        "backend": "redis-single", "runtime": "process", "situation": situation,
        "verdict": "as-claimed", "claims": {"grant": "holds", "belief": "breaks"},
        "seen": {"grant": "held", "belief": "broken"}, "seed": 1, **fields,
    }  # fmt: skip
    return Cell(**given)


def document(*cells: Cell, library: str = "redis-py") -> Document:
    return Document(library=library, cells=list(cells), started="2026-11-30T20:00:00+00:00")


def test_a_cell_says_what_was_seen_and_marks_what_was_promised() -> None:
    assert outcome(cell()) == "two believe"
    broken = cell(seen={"grant": "broken", "belief": "held"})
    assert outcome(broken) == "**granted twice**"
    assert outcome(cell(seen={"grant": "held", "belief": "held"})) == "holds"
    assert outcome(cell(verdict="unknown")) == "unknown"
    assert missing("redlock-py", "redlock5", "holder-jammed") == "–", "it renews nothing"
    assert missing("redis-py", "redis-single", "holder-jammed") == "not run"


def test_what_is_known_is_not_run_again_and_doubt_never_replaces_it() -> None:
    survey = Survey()
    add(survey, document(cell(), cell("worker-killed", verdict="unknown")))
    assert known(survey, "redis-py") == {("redis-single", "holder-pause")}
    add(survey, document(cell(verdict="unknown"), cell("worker-killed")))
    assert known(survey, "redis-py") == {
        ("redis-single", "holder-pause"), ("redis-single", "worker-killed"),
    }  # fmt: skip
    assert [c.situation for c in survey.documents["redis-py"].cells] == [
        "holder-pause", "worker-killed",
    ]  # fmt: skip
    assert known(survey, "kazoo") == set()


def test_the_page_has_figures_and_escapes() -> None:
    lost = Loss(losses=2, lag_ms=1500.4, awake_lag_ms=12.0, told_by={"released": 2})
    made = document(cell(loss=lost, takeover_ms=2500), cell("worker-killed", takeover_ms=640.2))
    made.about = "a | b <script>"
    page = page_of(Survey(command="lockhavoc survey", documents={"redis-py": made}))
    row = next(line for line in page.splitlines() if "| 1500 |" in line)
    assert "| 12 | holder-pause | released | 2500 | 640 |" in row
    assert "<script>" not in page
    assert "`lockhavoc survey`" in page
    assert "2026-11-30" in page


def test_canaries_are_not_surveyed() -> None:
    names = surveyed_libraries()
    assert "redis-py" in names
    assert not [name for name in names if LIBRARIES.load(name).canary]


def test_the_committed_page_is_made_from_the_committed_data() -> None:
    data = ROOT / "docs" / "survey.json"
    if not data.exists():
        pytest.skip("nothing has been surveyed yet")
    assert page_of(load_survey(data)) == (ROOT / "docs" / "survey.md").read_text()


def test_mistakes_are_named(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("[]")
    with pytest.raises(UserError, match="not a survey"):
        load_survey(tmp_path / "s.json")
    words = ["survey", "redis-pi", "--data", str(tmp_path / "none.json")]
    with pytest.raises(UserError, match="did you mean 'redis-py'"):
        CliRunner().invoke(cli, words, standalone_mode=False, catch_exceptions=False)


def test_the_page_alone_runs_nothing(tmp_path: Path) -> None:
    words = ["survey", "--page-only", "--data", str(tmp_path / "d.json"), "--page",
             str(tmp_path / "p.md")]  # fmt: skip
    done = CliRunner().invoke(cli, words, standalone_mode=False, catch_exceptions=False)
    assert done.return_value == 0
    assert "Nothing has been surveyed yet" in (tmp_path / "p.md").read_text()
