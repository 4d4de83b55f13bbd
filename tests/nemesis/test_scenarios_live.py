"""Scenarios whose fault needs more than the fault: they go through the whole pipeline once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clients.registry import LIBRARIES
from harness.plan import draw
from harness.scenario import load
from harness.stage import _clock_shim
from nemesis.clockshim import build
from tests.compose.local import ROOT, need

pytestmark = pytest.mark.live

BOOK = ROOT / "scenarios" / "redis"


def run(name: str, store: Path) -> dict[str, Any]:
    """The JSON document of one run in the process runtime."""
    words = [str(BOOK / f"{name}.toml"), "--json", "-q", "--runtime", "process", "--seed", "3"]
    done = subprocess.run(
        [sys.executable, "-m", "harness.cli", "run", *words, "--store", str(store)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.parametrize("name", ["clock-jump", "worker-clock-back"])
def test_processes_start_under_the_shim_where_the_plan_needs_it(name: str, tmp_path: Path) -> None:
    need()
    reason = build.why_not()
    if reason:
        pytest.skip(reason)
    document = run(name, tmp_path)
    assert document["verdict"] == "as-claimed"
    run_dir = Path(document["run_dir"])
    assert len(list((run_dir / "workers").glob("*.clock"))) == 4
    assert not list((run_dir / "servers").glob("*"))  # gone with the cluster


def test_nobody_runs_under_the_shim_without_a_clock_fault() -> None:
    library = LIBRARIES.load("redis-py")
    assert _clock_shim(draw(load(BOOK / "flushed.toml"), 1), library) is None
    if build.why_not() is None:
        assert _clock_shim(draw(load(BOOK / "clock-fast.toml"), 1), library) == build.path()


def test_a_connection_that_the_server_ended_is_found_by_its_name(tmp_path: Path) -> None:
    """The adapters name their connections, so the fault finds those of the holder alone."""
    need()
    document = run("holder-disconnected", tmp_path)
    assert document["verdict"] == "as-claimed"
    kills = [fault for fault in document["faults"] if fault["kind"] == "backend-kill"]
    assert len(kills) == 3
    assert all(fault["bit"] for fault in kills)
