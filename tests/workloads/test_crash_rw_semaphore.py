"""Workers that die inside, readers and writers, permits: generators, histories, doubts, pages."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers.view import CRASH, View
from harness.check import load_run
from harness.core.clock import NS_PER_MS
from harness.core.errors import UserError
from harness.core.history import Type
from harness.core.result import Valid
from harness.generator import Completion, EachWorker, Generator, SectionSpec, Step
from harness.report.document import RunReport
from harness.report.timeline import timeline
from harness.scenario import parse
from harness.workloads.registry import WORKLOADS
from tests.workloads.test_workloads_sim import PAUSE, run

SPEC = SectionSpec(
    seed=3, keys=1, ttl_ms=300, timeout_ms=500, hold_ns=(10_000_000, 20_000_000), idle_ns=(0, 5)
)  # fmt: skip


def steps(
    kind: str, params: dict[str, Any], *, count: int, spec: SectionSpec = SPEC, worker: int = 0
) -> list[Step]:
    """What one worker does, each operation lasting 1 ms and ending well; a crash ends its life."""
    made = WORKLOADS.load(kind)()
    settled = made.settle(params)
    leaf = made.leaf(made.shape(spec, settled), settled, worker=worker, until_ns=10**12)
    generator: Generator = EachWorker(tuple([leaf] * (worker + 1)))
    now_ns, found = 0, []
    for _ in range(count):
        step, generator = generator.op(worker, now_ns)
        assert step is not None
        found.append(step)
        now_ns = max(now_ns, step.at_ns) + NS_PER_MS
        do, outcome = ("died", "info") if step.do == CRASH else (step.do, "ok")
        generator = generator.update(Completion(worker, now_ns, do, outcome))
    return found


def verdict_of(report: RunReport, checker: str) -> Any:
    return next(result for result in report.results if result.checker == checker)


# ---- crash ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "before"),
    [("granted", ["acquire"]), ("working", ["acquire"]), ("releasing", ["acquire", "write"])],
)
def test_a_crash_comes_at_its_point(point: str, before: list[str]) -> None:
    found = steps("crash", {"every": 1, "point": point, "how": "kill", "back_ms": 7}, count=9)
    turn = [*before, CRASH]
    assert [step.do for step in found] == (turn * 5)[:9]
    last, crash = found[len(turn) - 2], found[len(turn) - 1]
    assert crash.crash is not None
    assert (crash.crash.how, crash.crash.point, crash.crash.back_ms) == ("kill", point, 7)
    assert (crash.key, crash.hold) == (found[0].key, found[0].hold)
    worked_ns = crash.at_ns - last.at_ns - NS_PER_MS
    assert worked_ns == 0 or point == "working", "no time passes but where it says so"
    assert 0 <= worked_ns <= 20 * NS_PER_MS


def test_one_of_every_few_sections_ends_in_a_crash_and_which_is_the_seeds_choice() -> None:
    def crashed(seed: int, worker: int) -> list[str]:
        spec = msgspec.structs.replace(SPEC, seed=seed)
        found = steps("crash", {"every": 4}, count=60, spec=spec, worker=worker)
        return [step.hold for step in found if step.do == CRASH]

    holds = crashed(3, 0)
    numbers = [int(hold.rpartition("-")[2]) for hold in holds]
    assert {later - earlier for earlier, later in pairwise(numbers)} == {4}
    assert crashed(3, 0) == holds
    assert len({tuple(crashed(seed, 0)) for seed in range(12)}) > 1
    ways = Counter(
        (step.crash.how, step.crash.point)
        for step in steps("crash", {"every": 1}, count=300)
        if step.crash is not None
    )
    assert len(ways) == 6, f"each way at each point: {ways}"


def test_crashes_are_in_the_history_and_are_judged(tmp_path: Path) -> None:
    report = run("recipe-redis-fenced", "crash", 4, tmp_path, mode="fenced", params={"every": 2})
    assert report.verdict == "as-claimed", report.says
    _, _, _, history, context = load_run(Path(report.run_dir))
    crashes = [op for op in history.intervals() if op.invoke.f == CRASH]
    view = View(history, context)
    assert len(crashes) >= 3
    assert len(view.crashes) == len(crashes)
    assert not context.faults
    said = {(op.complete.type, op.complete.error) for op in crashes if op.complete is not None}
    assert said == {(Type.INFO, "crashed: signal SIGKILL"), (Type.INFO, "crashed: exit code 0")}
    died = {op.invoke.process for op in crashes}
    after = [op for op in history.intervals() if op.invoke.process in died]
    last = {op.invoke.process: op.invoke.f for op in after}
    assert set(last.values()) == {CRASH}, "nobody acts after its death"
    whys = Counter(window.why for window in view.windows["k0"])
    assert whys["killed"] == len(crashes)
    recovery = verdict_of(report, "recovery")
    assert recovery.valid is Valid.TRUE
    assert recovery.stats["deaths"] == len(crashes)
    assert verdict_of(report, "exceptions").stats["errors"] == 0


def test_a_crash_waits_for_faults_on_its_worker(tmp_path: Path) -> None:
    fault = {**PAUSE, "count": 6, "every_ms": [10, 40], "duration_ms": [20, 200]}
    for seed in range(3):
        report = run(
            "recipe-redis", "crash", seed, tmp_path, faults=(fault,), mode="none",
            params={"every": 1, "back_ms": 20},
        )  # fmt: skip
        assert report.verdict == "as-claimed", (seed, report.says)
        assert not report.failures


def test_a_run_without_a_crash_is_doubted(tmp_path: Path) -> None:
    report = run("recipe-redis", "crash", 1, tmp_path, params={"every": 10_000})
    assert report.verdict == "unknown"
    assert verdict_of(report, "vacuity").anomalies[0].kind == "nobody-crashed"


# ---- readers and writers -------------------------------------------------------------------


def test_a_reader_reads_twice_and_a_writer_reads_and_writes() -> None:
    found = steps("rw", {"readers_pct": 50}, count=80)
    sections = [found[i : i + 4] for i in range(0, 80, 4)]
    kinds = Counter(section[0].mode for section in sections)
    assert set(kinds) == {"read", "write"}
    for section in sections:
        last = "read" if section[0].mode == "read" else "write"
        assert [step.do for step in section] == ["acquire", "read", last, "release"]
        assert section[2].at_ns - section[0].at_ns > 10 * NS_PER_MS


def test_a_reader_beside_a_reader_is_no_alarm_in_report_or_page(tmp_path: Path) -> None:
    report = run("recipe-redis-rw", "rw", 2, tmp_path, hold_ms=[20, 60])
    assert report.verdict == "as-claimed", report.says
    _, _, _, history, context = load_run(Path(report.run_dir))
    assert View(history, context).readers_max > 1
    page = timeline(report, history, context)
    assert page.overlaps == []
    modes = Counter(bar.reads for bar in page.bars)
    assert modes[True] > 10
    assert modes[False] > 10
    assert verdict_of(report, "effects").stats["readers"] > 10


def test_a_writer_among_readers_is_an_alarm_in_both(tmp_path: Path) -> None:
    report = run("broken-rw-writer-among-readers", "rw", 2, tmp_path, hold_ms=[20, 60])
    _, _, _, history, context = load_run(Path(report.run_dir))
    page = timeline(report, history, context)
    assert {pair.kind for pair in page.overlaps} == {"belief", "lease"}
    assert not any(pair.first.reads and pair.second.reads for pair in page.overlaps)
    kinds = {anomaly.kind for anomaly in verdict_of(report, "lease").anomalies}
    assert "reader-meets-writer" in kinds
    assert verdict_of(report, "exclusion").valid is Valid.FALSE
    changed = {anomaly.kind for anomaly in verdict_of(report, "effects").anomalies}
    assert "unrepeatable-read" in changed


def test_a_reader_that_outlives_its_lease_is_the_clients_fault(tmp_path: Path) -> None:
    report = run(
        "recipe-redis-rw", "rw", 5, tmp_path, mode="none", faults=({**PAUSE, "count": 6},),
        hold_ms=[30, 60],
    )  # fmt: skip
    exclusion = verdict_of(report, "exclusion")
    assert exclusion.valid is Valid.FALSE
    assert {str(anomaly.side) for anomaly in exclusion.anomalies} == {"client"}
    assert verdict_of(report, "lease").valid is Valid.TRUE


def test_readers_that_never_meet_are_doubted(tmp_path: Path) -> None:
    report = run(
        "recipe-redis-rw",
        "rw",
        1,
        tmp_path,
        workers=2,
        params={"readers_pct": 1},
        hold_ms=[300, 400],
    )
    assert report.verdict == "unknown"
    assert verdict_of(report, "vacuity").anomalies[0].kind == "no-two-readers"


# ---- permits -------------------------------------------------------------------------------


def test_sections_take_one_of_k_permits_and_write_nothing() -> None:
    found = steps("semaphore", {"k": 3}, count=4)
    assert [step.do for step in found] == ["acquire", "release"] * 2
    assert [step.k for step in found] == [3, None, 3, None]


def test_k_inside_are_no_alarm_and_one_more_is(tmp_path: Path) -> None:
    options: dict[str, Any] = {"mode": "none", "workers": 5, "params": {"k": 2}}
    report = run("recipe-redis-semaphore", "semaphore", 2, tmp_path, **options)
    assert report.verdict == "as-claimed", report.says
    _, _, _, history, context = load_run(Path(report.run_dir))
    assert (history.header.k, context.k) == (2, 2)
    assert View(history, context).inside_max == 2
    assert timeline(report, history, context).overlaps == []
    report = run("broken-semaphore-one-too-many", "semaphore", 2, tmp_path, **options)
    assert verdict_of(report, "lease").anomalies[0].kind == "too-many-permits"
    exclusion = verdict_of(report, "exclusion")
    assert {str(anomaly.side) for anomaly in exclusion.anomalies} == {"service"}


def test_a_semaphore_that_was_never_full_is_doubted(tmp_path: Path) -> None:
    report = run(
        "recipe-redis-semaphore", "semaphore", 1, tmp_path, mode="none", workers=4,
        params={"k": 3}, hold_ms=0, idle_ms=[200, 900],
    )  # fmt: skip
    kinds = {anomaly.kind for anomaly in verdict_of(report, "vacuity").anomalies}
    assert kinds & {"never-full", "no-contention"}


@pytest.mark.parametrize(
    ("client", "workload", "resource", "says"),
    [
        ("redis-py", {"kind": "rw"}, "none", r"'rw' needs a library with the power 'read'"),
        ("redis-py", {"kind": "semaphore"}, "none", r"'semaphore' needs .* the power 'permits'"),
        ("py-redis-semaphore", {"kind": "semaphore", "params": {"k": 4}}, "none",
         r"workload.params.k: 4 permits for 4 workers: nobody would ever wait"),
        ("py-redis-semaphore", {"kind": "semaphore", "workers": 9}, "fenced",
         r"resource.mode: 'fenced' refuses nothing"),
        ("redis-py", {"kind": "crash", "params": {"point": "begging"}}, "none",
         r"workload.params.point: 'begging' is not a choice"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    client: str, workload: dict[str, Any], resource: str, says: str
) -> None:
    with pytest.raises(UserError) as raised:
        parse({"name": "x", "claim": {"verdict": "holds"}, "client": {"library": client},
               "workload": workload, "resource": {"mode": resource}})  # fmt: skip
    assert raised.match(says) or any(says in line for line in raised.value.problems)


def test_a_seed_is_one_history(tmp_path: Path) -> None:
    cases = {
        "crash": "recipe-redis",
        "rw": "recipe-redis-rw",
        "semaphore": "recipe-redis-semaphore",
    }
    for kind, library in cases.items():
        made = [Path(run(library, kind, 5, tmp_path / n, mode="none").run_dir) for n in "ab"]
        assert len({(path / "history.jsonl").read_bytes() for path in made}) == 1, kind
        header = json.loads((made[0] / "history.jsonl").read_text().splitlines()[0])
        assert header.get("k") == (2 if kind == "semaphore" else None)
