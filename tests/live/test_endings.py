"""How a run can end: interrupted, killed, without servers, with a dead worker, with a full disk."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from harness import ledger
from tests.live.command import (
    ROOT,
    current_run,
    docker_leftovers,
    leftovers,
    lockhavoc,
    require,
    started,
    wait_for,
)

SCENARIO = str(ROOT / "scenarios" / "redis" / "holder-pause.toml")
RUNTIMES = [
    pytest.param("process", marks=pytest.mark.live),
    pytest.param("docker", marks=[pytest.mark.live, pytest.mark.docker]),
]


def fault_is_on(run: Path) -> bool:
    """True once the fault was injected (its evidence is in the ledger)."""
    return any(entry.entry == "fault" for entry in ledger.read(run))


def children(parent: int, word: str) -> list[int]:
    """Pids of the children of a process that have ``word`` in their command line."""
    listed = subprocess.run(
        ["ps", "-ww", "-o", "pid,args", "--ppid", str(parent), "--no-headers"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(line.split()[0]) for line in listed.stdout.splitlines() if word in line]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_in_order(
    runtime: str, number: signal.Signals, tmp_path: Path
) -> None:
    require(runtime)
    store = tmp_path / "store"
    with started("run", SCENARIO, "--runtime", runtime, "--store", str(store)) as process:
        run = wait_for(lambda: current_run(store), "operations")
        wait_for(lambda: fault_is_on(run), "the fault")
        process.send_signal(number)
        out, err = process.communicate(timeout=90)
    assert process.returncode == 130, err
    assert "INTERRUPTED" in out
    assert not ledger.open_promises(run)
    assert not leftovers(store)
    if runtime == "docker":
        assert not docker_leftovers(run)
    again = lockhavoc("check", str(run))
    assert again.returncode == 130, again.stderr
    assert "grants" in again.stdout


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_killed_harness_is_healed(runtime: str, tmp_path: Path) -> None:
    require(runtime)
    store = tmp_path / "store"
    with started("run", SCENARIO, "--runtime", runtime, "--store", str(store)) as process:
        run = wait_for(lambda: current_run(store), "operations")
        wait_for(lambda: fault_is_on(run), "the fault")
        busy = lockhavoc("heal", "--store", str(store))
        assert "still runs; left alone" in busy.stdout
        process.kill()
        process.communicate(timeout=30)
    healed = lockhavoc("heal", "--store", str(store))
    assert healed.returncode == 0, healed.stderr
    assert not ledger.open_promises(run)
    wait_for(lambda: not leftovers(store), "the end of all processes", 10)
    if runtime == "docker":
        assert not docker_leftovers(run)
    assert "nothing to heal" in lockhavoc("heal", "--store", str(store)).stdout
    again = lockhavoc("check", str(run))
    assert again.returncode in (1, 255), again.stderr
    assert "its harness died" in again.stdout


@pytest.mark.live
def test_a_worker_that_dies_by_itself_is_a_harness_failure_with_its_last_words(
    tmp_path: Path,
) -> None:
    require("process")
    store = tmp_path / "store"
    holds = str(ROOT / "scenarios" / "demo" / "1-holds.toml")
    with started("run", holds, "--runtime", "process", "--store", str(store)) as process:
        wait_for(lambda: current_run(store), "operations")
        os.kill(children(process.pid, "worker/main.py")[1], signal.SIGKILL)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 255, (out, err)
    assert "worker 1 died: signal SIGKILL" in out
    assert not leftovers(store)


def test_an_unreachable_engine_is_refused_with_the_fix(tmp_path: Path) -> None:
    words = ["--runtime", "docker", "--store", str(tmp_path / "store")]
    done = lockhavoc("run", SCENARIO, *words, DOCKER_HOST="unix:///nowhere/docker.sock")
    assert done.returncode == 254
    assert "/nowhere/docker.sock" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.live
def test_a_full_disk_ends_in_one_message(tmp_path: Path) -> None:
    require("process")
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(disk)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small file system here: {mounted.stderr.strip()}")
    try:
        holds = str(ROOT / "scenarios" / "demo" / "1-holds.toml")
        done = lockhavoc("run", holds, "--runtime", "process", "--store", str(disk / "store"))
        assert done.returncode == 255, (done.stdout, done.stderr)
        assert "No space left on device" in done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr
        assert not leftovers(disk)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
