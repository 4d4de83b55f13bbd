"""The clock shim by itself: what a process under it sees, and how it is built or refused."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.core.clock import NS_PER_S
from harness.core.errors import HarnessError, RefusedError
from harness.core.skew import SkewFile
from harness.core.undo import perform
from harness.places import Here
from harness.worker_clock import WorkerClock
from nemesis.clockshim import build
from nemesis.registry import FAULTS
from tests.compose.local import undo_elsewhere

DAY_NS = 86_400 * NS_PER_S
LOOK = (
    "import time, datetime\n"
    "print(time.time_ns(), time.monotonic_ns(), round(datetime.datetime.now().timestamp() * 1e9))"
)


@pytest.fixture
def clock(tmp_path: Path) -> SkewFile:
    reason = build.why_not()
    if reason:
        pytest.skip(reason)
    made = SkewFile(tmp_path / "x.clock")
    made.create()
    return made


def look(clock: SkewFile) -> tuple[int, int, int]:
    """(wall, monotonic, wall by another call) as a process under the shim sees them."""
    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        env={**os.environ, **clock.environment(build.ensure())},
        capture_output=True,
        text=True,
        check=True,
    )
    wall, monotonic, other = map(int, done.stdout.split())
    return wall, monotonic, other


def is_between(low_ns: int, value_ns: int, high_ns: int) -> bool:
    return low_ns - 1_000_000 <= value_ns <= high_ns + 1_000_000


@pytest.mark.parametrize("offset_ns", [0, DAY_NS, -DAY_NS, 1_500_000_000, -999_999_999])
def test_the_wall_clock_is_off_and_the_monotonic_clock_is_not(
    clock: SkewFile, offset_ns: int
) -> None:
    clock.set(offset_ns=offset_ns, rate_ppm=0)
    before, before_mono = time.time_ns(), time.monotonic_ns()
    wall, monotonic, other = look(clock)
    after, after_mono = time.time_ns(), time.monotonic_ns()
    assert is_between(before + offset_ns, wall, after + offset_ns)
    assert is_between(before + offset_ns, other, after + offset_ns)
    assert before_mono <= monotonic <= after_mono
    assert (clock.reads() > 0) == (offset_ns != 0)


@pytest.mark.parametrize("rate_ppm", [900_000, -900_000])
def test_a_rate_is_counted_from_when_it_was_set(clock: SkewFile, rate_ppm: int) -> None:
    set_ns = time.monotonic_ns()
    clock.set(offset_ns=0, rate_ppm=rate_ppm)
    wall, monotonic, _ = look(clock)
    ours_ns = time.time_ns() - time.monotonic_ns()
    off_ns = wall - monotonic - ours_ns
    wanted_ns = (monotonic - set_ns) * rate_ppm // 1_000_000
    assert abs(off_ns - wanted_ns) < 5_000_000
    assert abs(off_ns) > 5_000_000


def test_date_is_fooled_as_well(clock: SkewFile) -> None:
    """time(2), gettimeofday(2) and clock_gettime(2): programs use any of them."""
    clock.set(offset_ns=DAY_NS, rate_ppm=0)
    env = {**os.environ, **clock.environment(build.ensure())}
    done = subprocess.run(["date", "+%s"], env=env, capture_output=True, text=True, check=True)
    assert abs(int(done.stdout) - time.time() - 86_400) < 10


def test_the_undo_gives_the_true_time_from_any_process(clock: SkewFile) -> None:
    clock.set(offset_ns=DAY_NS, rate_ppm=900_000)
    assert "true time" in undo_elsewhere(clock.undo())
    assert clock.told_ns() == 0
    before = time.time_ns()
    assert is_between(before, look(clock)[0], time.time_ns())
    clock.path.unlink()
    assert "is gone" in perform(clock.undo()[0])
    with pytest.raises(HarnessError, match=r"x\.clock"):
        clock.set(offset_ns=1, rate_ppm=0)


def test_a_process_without_the_shim_has_no_clock_to_read(tmp_path: Path, clock: SkewFile) -> None:
    bare = WorkerClock("w0", tmp_path / "w0.clock", None)
    assert not bare.environment()
    with pytest.raises(HarnessError, match="w0 was started without the clock shim"):
        bare.reading(os.getpid())
    shimmed = WorkerClock("w1", tmp_path / "w1.clock", build.ensure())
    with pytest.raises(HarnessError, match="w1: the clock shim is not loaded in pid"):
        shimmed.reading(os.getpid())


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_clock_faults_are_refused_with_the_fix() -> None:
    for name in ("clock-jump", "clock-skew", "worker-clock-jump", "worker-clock-skew"):
        reason = FAULTS.load(name)().can(Here("process", "redis-single"))
        assert reason is not None
        assert "apt-get install gcc" in reason
    assert FAULTS.load("clock-jump")().can(Here("sim", "sim")) is None
    with pytest.raises(RefusedError, match="no C compiler"):
        build.ensure()


@pytest.mark.usefixtures("no_compiler")
def test_a_shim_that_is_there_needs_no_compiler() -> None:
    build.path().parent.mkdir(parents=True)
    build.path().write_bytes(b"")
    assert build.why_not() is None
    assert build.ensure() == build.path()


@pytest.mark.usefixtures("no_compiler")
def test_a_failing_compiler_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiler = tmp_path / "mycc"
    compiler.write_text("#!/bin/sh\necho 'no such header' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", "mycc")
    with pytest.raises(HarnessError, match=r"(?s)mycc.*no such header"):
        build.ensure()
    assert not build.path().exists()


def test_who_reads_the_clock_without_libc_is_refused() -> None:
    reason = FAULTS.load("clock-jump")().can(Here("process", "etcd3"))
    assert reason is not None
    assert "Go reads the clock past libc" in reason
