"""The compiled search: the same verdicts as the source, on recorded and on random histories."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import compiled
from tests.checkers import corpus

pytestmark = pytest.mark.slow

JUDGE = """
import json, sys
from pathlib import Path
from checkers.engine import check
from checkers.interchange.porcupine_corpus import read
from checkers.models import make

files = [sys.modules["checkers.engine." + name].__file__ for name in ("check", "wgl", "work")]
assert all(name.endswith(".so") for name in files), files
print(json.dumps([check(read(Path(path)).intervals(), make(model)).valid
                  for path, model in json.loads(sys.stdin.read())]))
"""


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """With the compiled package in front of this one."""
    if not any(map(shutil.which, (os.environ.get("CC") or "cc", "gcc", "clang"))):
        pytest.skip("no C compiler: apt-get install gcc libc6-dev")
    folder = compiled.unpacked(tmp_path_factory.mktemp("compiled"))
    return {**os.environ, "PYTHONPATH": str(folder)}


def python(env: dict[str, str], cwd: Path, *args: str, stdin: str = "") -> str:
    done = subprocess.run(
        [sys.executable, *args], env=env, cwd=cwd, input=stdin, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_recorded_histories(env: dict[str, str], tmp_path: Path) -> None:
    try:
        where = corpus.folder()
    except corpus.CorpusMissing as error:
        pytest.skip(f"corpus of Porcupine: {error}")
    entries = corpus.VERDICTS["histories"]
    asked = [(str(corpus.path_of(entry, where)), entry["model"]) for entry in entries]
    said = python(env, tmp_path, "-c", JUDGE, stdin=json.dumps(asked))
    expected = ["true" if entry["linearizable"] else "false" for entry in entries]
    assert json.loads(said) == expected


def test_random_histories_against_the_oracle(env: dict[str, str], tmp_path: Path) -> None:
    """Every model, with unknown outcomes, as the source is tested."""
    args = ("-m", "checkers.fuzz", "--model", "all", "--rounds", "60", "--seed", "3")
    lines = python(env, tmp_path, *args).splitlines()
    assert len(lines) > 10
    assert [line for line in lines if "all agree" not in line] == []
