"""A run of any size whose truth is known: workers take turns, one is paused past its lease.

    run = synthetic(ops=300)
    run.history, run.context, run.report, run.truth

Sections of acquire, write, release follow each other under one lock.  In the middle the holder is
stopped for three leases: the lock passes on, and its write comes late and is accepted.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from harness.check import analyse
from harness.core.history import Header, History, Op
from harness.core.protocols import CheckContext, FaultWindow, ResourceRecord
from harness.core.result import Anomaly, Result, Side, Valid
from harness.report.document import ClaimView, RunReport, Verdicts, judge_claim

MS = 1_000_000
TTL_NS = 50 * MS


@dataclass
class Truth:
    """Where things are (ns): the pause, the lease that ran out in it, the stale write."""

    worker: int = -1
    granted_ns: int = 0
    pause_ns: tuple[int, int] = (0, 0)
    stale_ns: int = 0
    believed_ns: int = 0
    next_worker: int = -1
    next_granted_ns: int = 0


@dataclass
class Run:
    history: History
    context: CheckContext
    report: RunReport
    truth: Truth


@dataclass
class _Maker:
    rng: random.Random
    workers: int
    events: list[tuple[int, int, str, str, str, dict[str, object], str | None]] = field(
        default_factory=list
    )
    records: list[ResourceRecord] = field(default_factory=list)
    truth: Truth = field(default_factory=Truth)
    holds: int = 0

    def op(
        self, call: int, ret: int, worker: int, f: str, hold: str, *, error: str | None = None
    ) -> None:
        key = "r0" if f == "write" else "k0"
        value: dict[str, object] = {"hold": hold}
        if f == "acquire":
            value["ttl_ns"] = TTL_NS
        self.events.append((call, worker, "invoke", f, key, value, None))
        kind = "ok" if error is None else "fail"
        self.events.append((ret, worker, kind, f, key, {"hold": hold}, error))

    def write(self, call: int, worker: int, hold: str) -> int:
        at = call + self.rng.randrange(50_000, 300_000)
        ret = at + self.rng.randrange(50_000, 300_000)
        self.op(call, ret, worker, "write", hold)
        self.records.append(
            ResourceRecord(seq=len(self.records) + 1, time=at, key="r0", hold=hold, accepted=True)
        )
        return ret


def _make(ops: int, workers: int, seed: int) -> _Maker:
    maker = _Maker(random.Random(seed), workers)
    rng, sections = maker.rng, max(4, ops // 3)
    asked = {worker: rng.randrange(1000, 900_000) for worker in range(workers)}
    late: tuple[int, int, str] | None = None
    now = 1_000_000
    for section in range(sections):
        worker = min(asked, key=lambda w: asked[w] + rng.randrange(0, 2_000_000))
        call = asked.pop(worker)
        granted = max(now, call) + rng.randrange(100_000, 500_000)
        hold = f"{worker}-{maker.holds}"
        maker.holds += 1
        maker.op(call, granted, worker, "acquire", hold)
        if late and maker.truth.next_worker < 0:
            maker.truth.next_worker, maker.truth.next_granted_ns = worker, granted
        if late is None and section == sections // 2:
            over = granted + 3 * TTL_NS
            maker.truth.worker, maker.truth.granted_ns = worker, granted
            maker.truth.pause_ns = (granted + 200_000, over)
            late = (over, worker, hold)
            now = granted + TTL_NS + 1_000_000
            continue
        end = maker.write(granted + rng.randrange(200_000, 900_000), worker, hold)
        now = end + rng.randrange(100_000, 400_000)
        maker.op(end + 50_000, now, worker, "release", hold)
        asked[worker] = now + rng.randrange(100_000, 5_000_000)
        if late and now > late[0]:
            _wake(maker, late, asked)
            late = (1 << 62, -1, "")
    if late and late[1] >= 0:
        _wake(maker, late, asked)
    return maker


def _wake(maker: _Maker, late: tuple[int, int, str], asked: dict[int, int]) -> None:
    over, worker, hold = late
    end = maker.write(over + 300_000, worker, hold)
    maker.truth.stale_ns = maker.records[-1].time
    maker.truth.believed_ns = end + 50_000
    maker.op(end + 50_000, end + 400_000, worker, "release", hold, error="not-held")
    asked[worker] = end + 500_000


def synthetic(*, ops: int = 300, workers: int = 4, seed: int = 7, judge: bool = True) -> Run:
    """A run of about ``ops`` operations.  judge: by all checkers, else only the stale write is
    told, which a big run has time for."""
    maker = _make(ops, workers, seed)
    maker.events.sort(key=lambda event: event[0])
    maker.records.sort(key=lambda record: record.time)
    for seq, record in enumerate(maker.records, 1):
        record.seq = seq
    found = [
        Op(index, time, worker, kind, f, key, value, error)
        for index, (time, worker, kind, f, key, value, error) in enumerate(maker.events)
    ]
    history = History(found, Header(name="synthetic", seed=seed, ttl_ns=TTL_NS))
    truth = maker.truth
    fault = FaultWindow(
        id=0, kind="worker-pause", targets=[f"w{truth.worker}"], start_ns=truth.pause_ns[0],
        end_ns=truth.pause_ns[1], when="held", bit=True, healed=True, says="state T",
    )  # fmt: skip
    context = CheckContext(
        ttl_ns=TTL_NS, workers=workers, resource_mode="unfenced", planned_faults=1,
        faults=[fault], resource=maker.records, recovery_ms_max=4000,
    )  # fmt: skip
    results = analyse(history, context) if judge else [_told(history, truth)]
    claim = ClaimView(verdict="violation", by=("fencing",), why="nothing fences the resource")
    outcome, exit_code, says = judge_claim(claim, results)
    report = RunReport(
        name="synthetic", run_dir="store/synthetic/now", seed=seed, runtime="sim", backend="sim",
        library="sim", claim=claim, verdict=outcome, says=says, valid=Verdicts.of(results),
        exit_code=exit_code, results=results, faults=[fault], started="2026-11-30T12:00:00+00:00",
        duration_ms=history.end_ns // MS, ops=len(history),
        replay=["lockhavoc", "run", "synthetic.toml", "--seed", str(seed)],
    )  # fmt: skip
    return Run(history, context, report, truth)


def _told(history: History, truth: Truth) -> Result:
    stale = [
        op.index
        for op in history.ops
        if op.process == truth.worker
        and truth.granted_ns <= op.time <= truth.believed_ns
        and op.type == "ok"
    ]
    anomaly = Anomaly(
        kind="stale-write-accepted", side=Side.RESOURCE, ops=stale[:2] + stale[-1:], key="r0",
        says=f"the write of worker {truth.worker} came too late",
    )  # fmt: skip
    return Result(checker="fencing", valid=Valid.FALSE, says=anomaly.says, anomalies=[anomaly])
