"""A released library against a fork of it, on a real server: the fork is a regression."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.verify.document import load
from tests.live.command import lockhavoc, require

pytestmark = pytest.mark.live
FORK = Path(__file__).with_name("fork_of_redis_py.py")


def test_a_fork_that_releases_without_looking_is_a_regression(tmp_path: Path) -> None:
    require("process")
    cell = (
        "--only", "late-release", "--backend", "redis-single", "--runtime", "process",
        "--seed", "1", "-q",
    )  # fmt: skip
    released = lockhavoc("verify", "redis-py", *cell, "--store", str(tmp_path / "a"))
    assert released.returncode == 0, released.stdout + released.stderr
    before = tmp_path / "a" / "verify" / "latest" / "verify.json"
    forked = lockhavoc(
        "verify", "redis-py", "--adapter", str(FORK), "--with", "redis", *cell,
        "--against", str(before), "--store", str(tmp_path / "b"),
    )  # fmt: skip
    assert forked.returncode == 1, forked.stdout + forked.stderr
    assert "REGRESSION: late-release on redis-single" in forked.stdout
    (seen,) = load(tmp_path / "b" / "verify" / "latest" / "verify.json").cells
    assert seen.verdict == "worse"
    assert seen.seen["answer"] == "broken"
    assert any(sentence.startswith("honesty:") for sentence in seen.found)
    assert "--adapter" in seen.replay
