"""Every faulty sample is found at its line and in its dimension; no corrected twin is accused."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest

from checkers.audit import audit
from checkers.audit.model import Record
from checkers.audit.rules.registry import RULES

SAMPLES = Path(__file__).resolve().parents[1] / "data" / "audit"
FAULTY = sorted(SAMPLES.glob("*.faulty.*"))
CORRECTED = sorted(SAMPLES.glob("*.corrected.*"))
LOOK_ALIKES = sorted(SAMPLES.glob("look-alike-*"))
DAY = datetime.date(2026, 11, 30)


def judged(*paths: Path) -> Record:
    return audit(paths, as_of=DAY)


def expected(path: Path) -> set[tuple[str, str, int]]:
    """(rule, dimension, line) that the comments of a sample demand."""
    found = set()
    for number, text in enumerate(path.read_text().splitlines(), 1):
        for word in re.findall(r"A-[A-Z]+-\d+ \w+", text):
            other = re.search(r"line (\d+)", text)
            rule, dimension = word.split()
            found.add((rule, dimension, int(other[1]) if other else number))
    assert found, f"{path.name} expects nothing"
    return found


def found(record: Record) -> set[tuple[str, str, int]]:
    return {(f.rule, str(f.dimension), f.line) for f in record.findings}


@pytest.mark.parametrize("path", FAULTY, ids=lambda p: p.name)
def test_a_faulty_sample_is_found_in_its_place_and_nothing_else_is(path: Path) -> None:
    record = judged(path)
    assert found(record) == expected(path)
    assert record.verdict == "NOT READY TO CLOSE"
    assert [file.status for file in record.files] == ["gap"]
    for _, dimension, _ in expected(path):
        assert record.dimensions[dimension].status == "gap"


@pytest.mark.parametrize("path", CORRECTED, ids=lambda p: p.name)
def test_a_corrected_twin_is_not_accused_and_is_no_pass_either(path: Path) -> None:
    record = judged(path)
    assert found(record) == set()
    assert record.verdict == "UNKNOWN", "a file alone does not decide recovery"
    assert not record.unread
    if path.suffix == ".py":
        assert [file.status for file in record.files] == ["no_gap"]
        assert "ok" in record.files[0].dimensions.values()


@pytest.mark.parametrize("path", LOOK_ALIKES, ids=lambda p: p.name)
def test_what_only_looks_like_a_lock_is_unknown(path: Path) -> None:
    record = judged(path)
    assert found(record) == set()
    assert [file.status for file in record.files] == ["unknown"]
    assert set(record.files[0].dimensions.values()) == {"unknown"}
    assert record.verdict == "UNKNOWN"


def test_every_faulty_sample_has_a_twin() -> None:
    twins = {p.name.replace(".corrected.", ".faulty.") for p in CORRECTED}
    assert {p.name for p in FAULTY} == twins


def test_every_rule_has_a_sample() -> None:
    shown = {rule for path in FAULTY for rule, _, _ in expected(path)}
    # A-CFG-3 and A-ID-8 need two files: test_across_files.py shows it; runs are in test_live.py.
    rest = {name for name in RULES.names() if not name.startswith("A-RUN-")} - shown
    assert rest == {"A-CFG-3", "A-ID-8"}


def test_registered_scripts_and_an_unlock_of_all_are_no_faulty_releases(tmp_path: Path) -> None:
    """Both were false alarms, on sherlock and on pals."""
    path = tmp_path / "locks.py"
    path.write_text(REGISTERED)
    assert found(judged(path)) == set()


REGISTERED = '''
import redis

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


class OwnedLock:
    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.owner = None
        self.release_script = client.register_script(RELEASE)


def recycle(cursor) -> None:
    cursor.execute("SELECT pg_advisory_unlock_all()")  # gives void: nothing to read
'''
