"""``lockhavoc audit``: exit codes, formats, exceptions, the same bytes for the same files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = Path("tests/data/audit")
FAULTY = SAMPLES / "a-id-1-plain-delete.faulty.py"
CORRECTED = SAMPLES / "a-id-1-plain-delete.corrected.py"


def run(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness.cli", "audit", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("path", "code"),
    [(FAULTY, 1), (CORRECTED, 2), (SAMPLES / "look-alike-plain.py", 2), ("nowhere.py", 254)],
)
def test_exit_codes(path: Path, code: int) -> None:
    ended = run(path)
    assert ended.returncode == code, ended.stderr
    if code == 254:
        assert "nowhere.py: no such file" in ended.stderr
        assert not ended.stdout


def test_json_is_one_document_with_the_published_names() -> None:
    ended = run(FAULTY, CORRECTED, "--json")
    data = json.loads(ended.stdout)
    assert data["verdict"] == "NOT READY TO CLOSE"
    assert set(data["dimensions"]) == {"identity", "lease", "fencing", "release_retry", "recovery"}
    by_path = {file["path"]: file for file in data["files"]}
    assert by_path[str(FAULTY)]["status"] == "gap"
    assert by_path[str(CORRECTED)]["status"] == "no_gap"
    assert by_path[str(CORRECTED)]["dimensions"]["release_retry"] == "ok"
    (finding,) = by_path[str(FAULTY)]["findings"]
    wanted = {"rule", "kind", "dimension", "severity", "line", "end_line", "says", "fix"}
    assert wanted <= set(finding)


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = run(SAMPLES, "--json"), run(SAMPLES, "--json", "--as-of", "2031-01-01")
    assert first.stdout == second.stdout
    assert len(json.loads(first.stdout)["files"]) > 40


def test_what_cannot_be_read_is_listed_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def lock(:\n")
    (tmp_path / "broken.toml").write_text("lock = = 1\n")
    (tmp_path / "later.kt").write_text("fun main() {}\n")
    (tmp_path / "latin.py").write_bytes(b"# \xe4\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    ended = run(tmp_path, tmp_path / "picture.png", "--json")
    unread = {Path(u["path"]).name: u["why"] for u in json.loads(ended.stdout)["unread"]}
    assert set(unread) == {"broken.py", "broken.toml", "later.kt", "latin.py", "picture.png"}
    assert "line 1" in unread["broken.py"]
    assert "Kotlin" in unread["later.kt"]
    assert ended.returncode == 2


def _with_comment(folder: Path, comment: str) -> subprocess.CompletedProcess[str]:
    text = (ROOT / FAULTY).read_text()
    text = text.replace("# expect: A-ID-1 release_retry", comment)
    (folder / "app.py").write_text(text)
    return run("app.py", "--json", "--as-of", "2026-11-30", cwd=folder)


def test_an_exception_with_reason_and_day_is_listed_and_opens_the_dimension(
    tmp_path: Path,
) -> None:
    comment = "# lockhavoc: except A-ID-1 until 2026-11-30: one process until December"
    ended = _with_comment(tmp_path, comment)
    data = json.loads(ended.stdout)
    assert ended.returncode == 2
    assert data["exceptions"][0]["reason"] == "one process until December"
    assert data["as_of"] == "2026-11-30"
    assert data["dimensions"]["release_retry"]["status"] == "unknown"
    assert data["dimensions"]["identity"]["status"] == "unknown"


@pytest.mark.parametrize(
    ("comment", "why"),
    [
        ("# lockhavoc: except A-ID-1", "until YYYY-MM-DD"),
        ("# lockhavoc: except A-ID-1 until 2027-01-01:", "until YYYY-MM-DD"),
        ("# lockhavoc: except A-ID-1: it is fine", "until YYYY-MM-DD"),
        ("# lockhavoc: except A-ID-1 until 2027-02-30: soon", "is no day"),
        ("# lockhavoc: except A-ID-1 until 2026-11-29: soon", "its last day was 2026-11-29"),
    ],
)
def test_an_exception_without_reason_or_day_or_after_it_is_refused(
    tmp_path: Path, comment: str, why: str
) -> None:
    ended = _with_comment(tmp_path, comment)
    data = json.loads(ended.stdout)
    assert ended.returncode == 1
    assert why in data["refused_exceptions"][0]
    assert [f["rule"] for file in data["files"] for f in file["findings"]] == ["A-ID-1"]


def test_an_exception_is_for_its_rule_only(tmp_path: Path) -> None:
    ended = _with_comment(tmp_path, "# lockhavoc: except A-ID-2 until 2027-01-01: other")
    assert ended.returncode == 1


def test_sarif_points_at_the_lines_and_keeps_exceptions_as_suppressions(tmp_path: Path) -> None:
    log = json.loads(run(FAULTY, "--format", "sarif").stdout)
    assert log["version"] == "2.1.0"
    (result,) = log["runs"][0]["results"]
    rules = log["runs"][0]["tool"]["driver"]["rules"]
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == "A-ID-1"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == str(FAULTY)
    assert place["region"] == {"startLine": 16, "endLine": 16}
    assert log["runs"][0]["properties"]["verdict"] == "NOT READY TO CLOSE"
    text = (
        (ROOT / FAULTY)
        .read_text()
        .replace(
            "# expect: A-ID-1 release_retry",
            "# lockhavoc: except A-ID-1 until 2026-12-01: moved soon",
        )
    )
    (tmp_path / "an app.py").write_text(text)
    (tmp_path / "later.kt").write_text("fun main() {}")
    ended = run(".", "--format", "sarif", "--as-of", "2026-11-30", cwd=tmp_path)
    (kept,) = json.loads(ended.stdout)["runs"][0]["results"]
    assert kept["suppressions"][0]["justification"] == "until 2026-12-01: moved soon"
    assert kept["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "an%20app.py"
    (note,) = json.loads(ended.stdout)["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert "Kotlin is not read" in note["message"]["text"]


def test_markdown_has_all_sections_and_lets_no_name_become_markup(tmp_path: Path) -> None:
    name = "<img src=x>|`a`_b_.py"
    (tmp_path / name).write_text((ROOT / FAULTY).read_text())
    said = run(".", "--format", "md", cwd=tmp_path).stdout
    for section in ("Dimensions", "Evidence", "Findings (1)", "Required actions", "Closure rule"):
        assert f"## {section}" in said
    assert "<img" not in said.replace("\\<img", "")
    rows = [line for line in said.splitlines() if line.startswith("| release")]
    assert len(rows) == 1
    assert rows[0].replace("\\|", "").count("|") == 6
