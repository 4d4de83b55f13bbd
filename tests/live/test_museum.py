"""The museum: pieces are whole, and two of them show their defect and, mended, do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness import cli
from harness.library_choice import apply
from harness.library_options import Chosen
from harness.scenario import load
from tests.live.command import require

ROOT = Path(__file__).resolve().parents[2]
PIECES = sorted((ROOT / "museum").glob("*.toml"))
SHOWN = ["redis-py-2.10-with", "sherlock-0.4.0-renewal"]  # the quickest; all: docs/museum.md


def test_the_museum_is_not_empty() -> None:
    assert PIECES


@pytest.mark.parametrize("piece", PIECES, ids=lambda path: path.stem)
def test_a_piece_names_versions_claim_and_report(piece: Path) -> None:
    scenario = load(piece)
    assert scenario.museum is not None
    assert scenario.name == f"museum-{piece.stem}"
    assert scenario.claim.verdict == "violation"
    assert scenario.claim.by
    assert scenario.client.with_, "a faulty version is pinned"
    assert scenario.client.adapter is None or Path(scenario.client.adapter).is_file()
    fixed = apply(scenario, Chosen(fixed=True))
    assert fixed.claim.verdict == "holds"
    assert (fixed.client.with_, fixed.client.library, fixed.client.options) != (
        scenario.client.with_,
        scenario.client.library,
        scenario.client.options,
    )
    assert piece.name in (ROOT / "docs" / "museum.md").read_text()


@pytest.mark.live
@pytest.mark.parametrize("name", SHOWN)
def test_the_faulty_version_is_flagged_and_the_fixed_one_is_silent(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require("process")
    for more, verdict in ([], "violation"), (["--fixed"], "holds"):
        argv = ["lockhavoc", "run", str(ROOT / "museum" / f"{name}.toml"), *more, "--json", "-q"]
        argv += ["--runtime", "process", "--seed", "1", "--store", str(tmp_path)]
        monkeypatch.setattr("sys.argv", argv)
        assert cli._run() == 0
        report = json.loads(capsys.readouterr().out)
        # Fields that have their usual value are left out of the document.
        assert report["claim"].get("verdict", "holds") == verdict
        results = [result for result in report["results"] if result.get("safety", True)]
        found = [anomaly for result in results for anomaly in result.get("anomalies", [])]
        assert bool(found) == (verdict == "violation"), "operations prove it"
