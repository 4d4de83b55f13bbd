"""What is generated fails on the faulty sample and passes on the corrected one, and does run."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from checkers.audit.generate import bench_rules, checks, generate
from checkers.audit.generate.bench import server
from checkers.audit.generate.scenarios import scenario
from checkers.audit.read import read
from checkers.audit.rules.registry import RULES
from checkers.audit.verdict import judge
from harness.cli import cli
from harness.core.errors import UserError
from harness.scenario import parse
from tests.canaries.scenarios import run_once

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "tests" / "data" / "audit"
DAY = datetime.date(2026, 11, 30)
DRIVEN = [
    ("A-ID-1", "a-id-1-plain-delete"),
    ("A-ID-1", "a-id-1-renew-without-token"),
    ("A-ID-2", "a-id-2-constant-token"),
    ("A-ID-3", "a-id-3-token-of-the-module"),
    ("A-ID-5", "a-id-5-key-of-data"),
    ("A-ID-6", "a-id-6-answer-dropped"),
    ("A-ID-7", "a-id-7-goes-on"),
    ("A-ID-7", "a-id-7-null-lock"),
    ("A-ID-9", "a-id-9-bytes"),
    ("A-LEASE-1", "a-lease-1-redis-py"),
    ("A-LEASE-2", "a-lease-2-setnx-expire"),
    ("A-LEASE-3", "a-lease-3-milliseconds-as-seconds"),
    ("A-LEASE-7", "a-lease-7-renewed-by-set"),
    ("A-LEASE-8", "a-lease-8-deadline-as-value"),
    ("A-REL-1", "a-rel-1-redis"),
    ("A-RETRY-1", "a-retry-1-constant-step"),
    ("A-RETRY-2", "a-retry-2-for-ever"),
    ("A-RETRY-4", "a-retry-4-outage-is-busy"),
    ("A-RETRY-5", "a-retry-5-two-orders"),
    ("A-REC-2", "a-rec-2-flush-at-start"),
    ("A-REC-3", "a-rec-3-not-read-again"),
]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with server() as found:
        yield found


def case_of(rule: str, path: Path) -> list[str]:
    """The functions that the generated test of this finding calls."""
    inputs = read([path])
    made = generate(judge(inputs, as_of=DAY), inputs, path.parent)
    lines = [x for x in made.files["test_ownership.py"].splitlines() if f"    ('{rule}'," in x]
    assert lines, f"no case for {rule}: {made.skipped}"
    words: tuple[str, str, list[str]] = eval(lines[0].strip().rstrip(","))  # our own output
    assert words[1] == path.name
    return words[2]


@pytest.mark.live
@pytest.mark.parametrize(("rule", "name"), DRIVEN)
def test_a_generated_test_fails_on_the_faulty_sample_and_passes_on_its_twin(
    port: int, rule: str, name: str
) -> None:
    faulty, corrected = (SAMPLES / f"{name}.{kind}.py" for kind in ("faulty", "corrected"))
    scopes = case_of(rule, faulty)
    with pytest.raises(AssertionError) as failed:
        checks.CHECKS[rule](port, str(faulty), scopes)
    assert "ARGUMENTS" not in str(failed.value), "it did not get to the point"
    checks.CHECKS[rule](port, str(corrected), scopes)


def test_all_rules_with_a_check_are_driven_here() -> None:
    assert {rule for rule, _ in DRIVEN} == set(bench_rules.RULES) == set(checks.CHECKS)
    assert len(bench_rules.RULES) >= 15


def written(folder: Path, *words: str) -> str:
    command = ["audit", "generate", *words, "--into", str(folder)]
    ended = CliRunner().invoke(cli, command, standalone_mode=False)
    if ended.exception is not None:
        raise ended.exception
    return ended.output


@pytest.mark.live
def test_the_written_file_runs_by_itself_and_turns_when_the_code_is_mended(tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text((SAMPLES / "a-id-1-plain-delete.faulty.py").read_text())
    said = written(tmp_path / "proofs", str(app))
    assert "test_ownership.py" in said
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path),
        str(tmp_path / "proofs" / "test_ownership.py"),
    ]  # fmt: skip
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTEST_ADDOPTS")}
    before = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
    assert before.returncode == 1, before.stdout
    assert "the lock of its present owner was changed" in before.stdout
    app.write_text((SAMPLES / "a-id-1-plain-delete.corrected.py").read_text())
    after = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
    assert after.returncode == 0, after.stdout


def test_files_that_were_edited_are_not_written_over(tmp_path: Path) -> None:
    sample = str(SAMPLES / "a-id-1-plain-delete.faulty.py")
    written(tmp_path, sample)
    written(tmp_path, sample)  # the same again harms nothing
    path = tmp_path / "test_ownership.py"
    path.write_text(path.read_text() + "# mine\n")
    with pytest.raises(UserError, match="--force"):
        written(tmp_path, sample)
    written(tmp_path, sample, "--force")
    assert "# mine" not in path.read_text()


def test_the_same_findings_give_the_same_files_and_say_what_has_no_test(tmp_path: Path) -> None:
    inputs = read([SAMPLES])
    record = judge(inputs, as_of=DAY)
    one, two = (generate(record, inputs, tmp_path) for _ in range(2))
    assert one.files == two.files
    compile(one.files["test_ownership.py"], "test_ownership.py", "exec")
    assert any("only Python is driven" in words for words in one.skipped)
    assert any("only Redis is driven" in words for words in one.skipped)
    assert "pg_stat_activity" in one.files["queries.md"]
    assert "redis-cli" in one.files["queries.md"]


@pytest.mark.parametrize("rule", [r for r in RULES.names() if not r.startswith("A-RUN-")])
def test_the_scenario_of_each_rule_is_one(rule: str) -> None:
    library = "redis-py-fenced" if rule.startswith("A-FENCE-") else "redis-py"
    found = parse(tomllib.loads(scenario(rule, library=library)))
    assert found.claim.verdict == "holds"


@pytest.mark.parametrize(
    ("rule", "broken", "sound"),
    [
        ("A-ID-1", "broken-release-without-check", "recipe-redis"),
        ("A-ID-2", "broken-constant-token", "recipe-redis"),
        ("A-LEASE-1", "broken-no-ttl", "recipe-redis"),
        ("A-LEASE-7", "broken-renewal-recreates", "recipe-redis"),
        ("A-FENCE-2", "broken-token-reused", "recipe-redis-fenced"),
    ],
)
def test_a_generated_scenario_fails_with_the_broken_lock_and_holds_with_the_sound_one(
    tmp_path: Path, rule: str, broken: str, sound: str
) -> None:
    for library, code in ((broken, 1), (sound, 0)):
        found = parse(tomllib.loads(scenario(rule, library=library, backend="sim")))
        report = run_once(found, 5, tmp_path)
        assert report.exit_code == code, f"{library}: {report.says}"
