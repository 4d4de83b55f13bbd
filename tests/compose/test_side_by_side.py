"""Three clusters at once under ``pytest -n 3``: what is done to one, the others do not feel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import combinations
from typing import Any

import pytest

from nemesis.clockshim import build
from tests.compose.local import ROOT, need
from tests.compose.side_by_side import STORM

pytestmark = pytest.mark.live

# Two of one kind, so that whatever is shared by name would be shared, and another.
BACKENDS = {"hit": "redis-single", "equal": "redis-single", "other": "etcd3"}
RUNTIME = os.environ.get("LOCKHAVOC_TEST_RUNTIME", "process")
TEST = """
from pathlib import Path
from tests.compose.side_by_side import play

def test_{name}():
    play("{name}", "{backend}", Path("{folder}"), others=2, hit={hit}, runtime="{runtime}")
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each of the three saw."""
    for backend in set(BACKENDS.values()):
        need(backend)
    if build.why_not():
        pytest.skip(build.why_not() or "")
    folder = tmp_path_factory.mktemp("side-by-side")
    tests = [
        TEST.format(name=name, backend=backend, folder=folder, hit=name == "hit", runtime=RUNTIME)
        for name, backend in BACKENDS.items()
    ]
    file = folder / "test_three.py"
    file.write_text("\n".join(tests))
    words = ["-q", "-n", "3", "-p", "no:cacheprovider", "-c", os.devnull, str(file)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", f"--rootdir={folder}", *words],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
        | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: json.loads((folder / f"{name}.json").read_text()) for name in BACKENDS}


def test_all_were_up_while_one_was_hit(seen: dict[str, dict[str, Any]]) -> None:
    assert len(seen["hit"]["storm"]) == len(STORM)
    assert seen["hit"]["facts"] != seen["hit"]["facts_after"], "its server was started anew"
    for name in ("equal", "other"):
        looks = [look["at_ns"] for look in seen[name]["history"]]
        during = [at for at in looks if seen["hit"]["from_ns"] < at < seen["hit"]["to_ns"]]
        assert during, f"{name} did not look while the other was hit"


@pytest.mark.parametrize("name", ["equal", "other"])
def test_the_others_saw_nothing(seen: dict[str, dict[str, Any]], name: str) -> None:
    assert [wrong for look in seen[name]["history"] for wrong in look["wrong"]] == []
    assert seen[name]["facts"] == seen[name]["facts_after"]


def test_nothing_is_shared(seen: dict[str, dict[str, Any]]) -> None:
    for first, second in combinations(BACKENDS, 2):
        for what in ("ports", "steps"):
            assert seen[first][what]
            assert not set(seen[first][what]) & set(seen[second][what]), (what, first, second)
