"""worker-starve on real processes: how much they get done, and what a killed harness leaves."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.core import limits
from harness.core.undo import process_state
from harness.places import Here
from nemesis.registry import FAULTS
from nemesis.worker_starve import WorkerStarve
from tests.compose.local import ROOT, undo_elsewhere
from tests.nemesis.worlds import TestWorld, worker_processes

# A worker in miniature: burns processor time and tells how far it got when it is asked.
STARVER = """
import json, os, subprocess, sys
from harness.core.clock import MonotonicClock
from harness.workers import ProcessPool
from pathlib import Path
from nemesis.worker_starve import WorkerStarve
from types import SimpleNamespace
pool = ProcessPool(["cat"], workers=1, log_dir=Path(sys.argv[1]), mark=sys.argv[2])
world = SimpleNamespace(clock=MonotonicClock(), workers=pool.handles, runtime="process")
fault = WorkerStarve(share_percent=1, period_ms=250)
steps = list(fault.undo(world, ["w0"]))
fault.inject(world, ["w0"])
print(json.dumps({"pid": pool.handles[0].pid, "steps": steps}), flush=True)
sys.stdin.read()
"""

pytestmark = pytest.mark.live


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_busy_worker_gets_its_share_and_not_more(tmp_path: Path) -> None:
    busy = [sys.executable, "-c", "while True: pass"]
    with worker_processes(tmp_path, 1, argv=busy) as (worker,):
        world = TestWorld(cluster=None, workers=[worker])  # type: ignore[arg-type]  # not used
        pid = int(worker.status().identity.partition("@")[0])
        fault = WorkerStarve(share_percent=20)
        fault.inject(world, ["w0"])
        before, start_ns = cpu_ticks(pid), time.monotonic_ns()
        assert fault.evidence(world, ["w0"]).bit
        world.clock.sleep_until(start_ns + 2_000_000_000)
        used_ms = (cpu_ticks(pid) - before) * 10
        took_ms = (time.monotonic_ns() - start_ns) // 1_000_000
        fault.heal(world, ["w0"])
        assert fault.healed(world, ["w0"]).bit
        assert 0 < used_ms <= took_ms * 0.4, f"{used_ms} of {took_ms} ms"


def test_a_paused_worker_is_at_a_standstill_and_not_starved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EVIDENCE_TIMEOUT_MS", 200)
    with worker_processes(tmp_path, 1) as (worker,):
        world = TestWorld(cluster=None, workers=[worker])  # type: ignore[arg-type]  # not used
        fault = WorkerStarve()
        fault.inject(world, ["w0"])
        fault._turns["w0"].end()
        fault._turns["w0"].turns = 0
        worker.pause()
        assert not fault.evidence(world, ["w0"]).bit
        worker.resume()
        assert not fault.evidence(world, ["w0"]).bit


def test_a_killed_harness_leaves_a_worker_that_the_ledger_sets_going(tmp_path: Path) -> None:
    mark = f"starve-{tmp_path.name}-{time.monotonic_ns()}"
    harness = subprocess.Popen(
        [sys.executable, "-c", STARVER, str(tmp_path), mark],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with harness:
        assert harness.stdout is not None
        told = json.loads(harness.stdout.readline())
        pid = told["pid"]
        try:
            deadline = time.monotonic() + 10
            while process_state(pid) != "T" and time.monotonic() < deadline:
                pass
        finally:
            harness.kill()
    # Its stdin has ended, so ``cat`` ends by itself as soon as it may run again.
    undo_elsewhere(told["steps"])
    deadline = time.monotonic() + 10
    while process_state(pid) not in (None, "Z") and time.monotonic() < deadline:
        pass
    assert process_state(pid) in (None, "Z")


def test_it_is_refused_in_virtual_time() -> None:
    reason = FAULTS.load("worker-starve")().can(Here("sim", "sim"))
    assert reason is not None
    assert "no processor time" in reason
