"""The pytest plugin: marked scenarios, results in summary and JUnit, real servers as fixtures."""

from __future__ import annotations

import os
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from harness.pytest_plugin import _command
from tests.live.command import require

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
CACHE = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")  # pytester moves HOME
SCENARIO = (ROOT / "scenarios" / "sim" / "correct-lock.toml").read_text()

MARKED = """
import pytest

@pytest.mark.lockhavoc("holds.toml", seed=3)
def test_holds(lockhavoc_run):
    assert (lockhavoc_run.verdict, lockhavoc_run.seed) == ("as-claimed", 3)
    assert lockhavoc_run.directory.is_dir()

@pytest.mark.lockhavoc("wrong.toml", seed=3)
def test_wrong():
    raise AssertionError("its body is never reached")
"""


def run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, *words: str
) -> pytest.RunResult:
    """pytest in a process of its own, with the plugin, calling this checkout's tool."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    command = f"--lockhavoc-command={sys.executable} -m harness.cli"
    return pytester.runpytest_subprocess("--strict-markers", command, *words)


@pytest.fixture
def marked(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(MARKED)
    (pytester.path / "holds.toml").write_text(SCENARIO)
    wrong = SCENARIO.replace('verdict = "holds"', 'verdict = "violation"\nby = ["lease"]')
    (pytester.path / "wrong.toml").write_text(wrong)
    return pytester


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_a_marked_scenario_decides_the_test(
    marked: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: list[str]
) -> None:
    result = run(marked, monkeypatch, "--lockhavoc-runtime=sim", "--junitxml=junit.xml", *workers)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*wrong.toml ended with exit code 1, not as claimed*",
            "*repeat: *--seed 3*",
            "*= lockhavoc =*",
            "as-claimed  *::test_holds  seed 3  *",
        ]
    )
    assert "never reached" not in result.stdout.str()
    cases = ElementTree.parse(marked.path / "junit.xml").iter("testcase")
    found = {
        case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")}
        for case in cases
    }
    assert found["test_holds"]["lockhavoc_verdict"] == "as-claimed"
    assert found["test_wrong"]["lockhavoc_seed"] == "3"
    stores = {Path(one["lockhavoc_run_dir"] or "").parents[1] for one in found.values()}
    assert all(store.is_relative_to(marked.path / "store") for store in stores)
    if workers:
        assert {store.name for store in stores} <= {"gw0", "gw1"}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ('@pytest.mark.lockhavoc("no.toml")\ndef test_it(): pass', "names 'no.toml', which is nei"),
        ("def test_it(lockhavoc_run): pass", "needs the mark lockhavoc(scenario)"),
        ('def test_it(lock_backend): lock_backend("redis-singel")', "redis-single"),
    ],
)
def test_what_is_asked_wrongly_fails_with_the_reason(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, body: str, says: str
) -> None:
    pytester.makepyfile(f"import pytest\n{body}\n")
    result = run(pytester, monkeypatch)
    assert result.ret == 1
    assert says in result.stdout.str()


def test_without_the_tool_it_says_how_to_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.fail.Exception, match=r"no lockhavoc on PATH.*--lockhavoc-command"):
        _command("")
    assert _command("python -m harness.cli") == ["python", "-m", "harness.cli"]


@pytest.mark.live
def test_a_backend_is_real_and_its_faults_bite(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", CACHE)
    require("process")
    page = (ROOT / "docs" / "how-to" / "pytest.md").read_text()
    example = page.split("<!-- file: test_redis.py -->\n```python\n")[1].split("```")[0]
    pytester.makepyfile(test_redis=example)
    result = run(pytester, monkeypatch)
    result.assert_outcomes(passed=2)
