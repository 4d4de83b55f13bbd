"""A baseline tells old findings from new; the page has what the other formats have, escaped."""

from __future__ import annotations

import datetime
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft4Validator  # type: ignore[import-untyped] # has none

from checkers.audit import audit
from checkers.audit.sarif import as_sarif
from harness.cli import cli
from harness.core.errors import UserError
from harness.report.audit_page import audit_page

SAMPLES = Path(__file__).resolve().parents[1] / "data" / "audit"
FAULTY = (SAMPLES / "a-id-1-plain-delete.faulty.py").read_text()
DAY = datetime.date(2026, 11, 30)


def run(*words: object) -> tuple[int, str]:
    ended = CliRunner().invoke(cli, ["audit", *map(str, words)], standalone_mode=False)
    if ended.exception is not None:
        raise ended.exception
    return int(ended.return_value), ended.stdout


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text(FAULTY)
    return path


def test_what_a_baseline_knows_does_not_fail_and_is_no_pass(app: Path, tmp_path: Path) -> None:
    known = tmp_path / "baseline.json"
    assert run(app, "--write-baseline", known)[0] == 0
    first = known.read_bytes()
    code, said = run(app, "--baseline", known, "--json")
    data = json.loads(said)
    assert code == 2
    assert data["dimensions"]["release_retry"]["status"] == "unknown"
    assert [f["rule"] for f in data["known"]] == ["A-ID-1"]
    assert run(app, "--baseline", known, "--fail-on", "findings")[0] == 0
    assert run(app, "--baseline", known, "--write-baseline", known)[0] == 0
    assert known.read_bytes() == first, "what is known stays known"


def test_lines_may_move_and_what_is_new_fails(app: Path, tmp_path: Path) -> None:
    known = tmp_path / "baseline.json"
    run(app, "--write-baseline", known)
    app.write_text("# one\n# two\n" + FAULTY)
    assert run(app, "--baseline", known)[0] == 2
    app.write_text(FAULTY + FAULTY.replace("def ", "def again_"))
    code, said = run(app, "--baseline", known, "--json")
    found = [f["rule"] for file in json.loads(said)["files"] for f in file["findings"]]
    assert code == 1
    assert found == ["A-ID-1"], "of equal lines as many are known as there were"


@pytest.mark.parametrize("text", ["", "{}", '{"schema": "x/1"}', '{"schema": 1}', "[]"])
def test_what_is_no_baseline_is_refused(app: Path, tmp_path: Path, text: str) -> None:
    known = tmp_path / "baseline.json"
    known.write_text(text)
    with pytest.raises(UserError, match="--baseline"):
        run(app, "--baseline", known)


class Tags(HTMLParser):
    """Tags and text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") or name in ("src", "style") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_page_has_all_sections_and_lets_no_name_become_markup(tmp_path: Path) -> None:
    folder = tmp_path / "<script>alert(1)<"
    folder.mkdir()
    (folder / "<img onerror=x>.py").write_text(FAULTY)
    (folder / "x.toml").write_text("= <b>")
    record = audit([folder], as_of=DAY)
    html = audit_page(record)
    assert html == audit_page(record)
    page = Tags()
    page.feed(html)
    assert not {"script", "img", "iframe", "link", "b"} & set(page.tags)
    text = " ".join(page.words)
    for words in (
        "Dimensions", "Evidence", "Findings (1)", "Required actions", "Evidence boundaries",
        "Closure rule", "NOT READY TO CLOSE", "<img onerror=x>.py", "Not read",
        record.findings[0].says,
    ):  # fmt: skip
        assert words in text
    assert "default-src 'none'" in html
    assert "http://" not in html
    assert "https://" not in html


def test_sarif_of_all_samples_has_the_shape_that_the_standard_demands() -> None:
    """The schema itself, and what it does not say."""
    log = json.loads(as_sarif(audit([SAMPLES], as_of=DAY)))
    schema = json.loads((SAMPLES.parent / "sarif/sarif-schema-2.1.0.json").read_bytes())
    assert [error.message for error in Draft4Validator(schema).iter_errors(log)] == []
    assert set(log) <= {"$schema", "version", "runs"}
    (one,) = log["runs"]
    rules = one["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("note", "warning", "error")
    assert len(one["results"]) > 100
    for result in one["results"]:
        assert set(result) <= {
            "ruleId", "ruleIndex", "level", "message", "locations", "properties",
            "suppressions", "partialFingerprints", "baselineState",
        }  # fmt: skip
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        region = result["locations"][0]["physicalLocation"]["region"]
        assert 1 <= region["startLine"] <= region["endLine"]
        assert result["partialFingerprints"]["lockhavocFinding/v1"]


def test_the_hook_runs_a_command_that_there_is() -> None:
    text = (SAMPLES.parents[2] / ".pre-commit-hooks.yaml").read_text()
    entry = next(x for x in text.splitlines() if "entry:" in x).partition(":")[2].split()
    assert entry[0] == "lockhavoc"
    corrected = SAMPLES / "a-id-1-plain-delete.corrected.py"
    assert run(*entry[2:], corrected)[0] == 0
    assert run(*entry[2:], SAMPLES / "a-id-1-plain-delete.faulty.py")[0] == 1
