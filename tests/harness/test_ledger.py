"""The ledger survives the harness, and heal keeps its promises from another process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import ledger
from harness.core.clock import MonotonicClock
from harness.core.errors import UserError
from harness.core.undo import MARK_VARIABLE, kill_marked_step, process_state, signal_step
from harness.ledger import FileLedger

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def wait_for(condition: object, timeout_s: float = 10.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def test_promises_are_on_disk_before_they_are_needed(tmp_path: Path) -> None:
    book = FileLedger(tmp_path, MonotonicClock())
    first = book.promise([{"do": "remove", "path": str(tmp_path / "a")}], why="a folder")
    second = book.promise([{"do": "remove", "path": str(tmp_path / "b")}], why="another")
    assert sorted(ledger.open_promises(tmp_path)) == [first, second]
    book.done(first)
    assert sorted(ledger.open_promises(tmp_path)) == [second]
    book.close()


def test_heal_undoes_latest_first_and_only_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    book = FileLedger(tmp_path, MonotonicClock())
    book.promise([{"do": "remove", "path": str(tmp_path / "a")}], why="first")
    book.promise([{"do": "remove", "path": str(tmp_path / "b")}], why="second")
    book.close()
    done, failures = ledger.heal(tmp_path)
    assert [line.split(":")[0] for line in done] == ["second", "first"]
    assert not failures
    assert not (tmp_path / "a").exists()
    assert ledger.heal(tmp_path) == ([], [])


def test_a_live_harness_is_seen(tmp_path: Path) -> None:
    book = FileLedger(tmp_path, MonotonicClock())
    assert ledger.is_alive(tmp_path)
    book.close()
    assert not ledger.is_alive(tmp_path)


def test_a_paused_and_a_marked_process_are_healed(tmp_path: Path) -> None:
    paused = subprocess.Popen(SLEEP)
    marked = subprocess.Popen(SLEEP, env={**os.environ, MARK_VARIABLE: "test-heal"})
    try:
        book = FileLedger(tmp_path, MonotonicClock())
        book.promise([kill_marked_step("test-heal")], why="processes")
        book.promise([signal_step(paused.pid)], why="pause")
        os.kill(paused.pid, signal.SIGSTOP)
        wait_for(lambda: process_state(paused.pid) == "T")
        book.close()
        _, failures = ledger.heal(tmp_path)
        assert not failures
        wait_for(lambda: process_state(paused.pid) != "T")
        assert marked.wait(5) == -signal.SIGKILL
        assert paused.poll() is None
    finally:
        for process in (paused, marked):
            process.kill()
            process.wait()


def test_a_reused_pid_is_left_alone(tmp_path: Path) -> None:
    bystander = subprocess.Popen(SLEEP)
    try:
        step = {**signal_step(bystander.pid, "KILL"), "start": 1}
        book = FileLedger(tmp_path, MonotonicClock())
        book.promise([step], why="somebody else")
        book.close()
        done, failures = ledger.heal(tmp_path)
        assert not failures
        assert "is gone" in done[0]
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_step_that_fails_is_reported_and_stays_open(tmp_path: Path) -> None:
    book = FileLedger(tmp_path, MonotonicClock())
    book.promise([{"do": "argv", "argv": ["false"]}], why="impossible")
    book.close()
    _, failures = ledger.heal(tmp_path)
    assert failures
    assert "impossible" in failures[0]
    assert ledger.open_promises(tmp_path)


def test_a_torn_last_line_is_left_out_but_a_broken_middle_is_named(tmp_path: Path) -> None:
    book = FileLedger(tmp_path, MonotonicClock())
    book.promise([], why="kept")
    book.close()
    path = tmp_path / ledger.FILE
    path.write_bytes(path.read_bytes() + b'{"entry":"pro')
    assert len(ledger.read(tmp_path)) == 1
    path.write_bytes(b"nonsense\n" + path.read_bytes())
    with pytest.raises(UserError, match="line 1"):
        ledger.read(tmp_path)
