"""The timeline's data against a run whose truth is known, and the words told from it."""

from __future__ import annotations

import msgspec
import pytest

from checkers.view import View
from harness.core.history import History, Op
from harness.core.protocols import CheckContext, FaultWindow
from harness.core.result import Anomaly, Result, Side, Valid
from harness.report.document import RunReport
from harness.report.holds import bars
from harness.report.marks import ACCEPTED, REFUSED, STALE, overlaps_of, worst, writes_of
from harness.report.sequence import sequence
from harness.report.story import Step, story
from harness.report.text import milliseconds
from harness.report.timeline import Timeline, is_worker, node_of, timeline
from harness.report.waits import histogram, waits
from tests.report.synthetic import TTL_NS, Run, synthetic


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic(ops=300)


@pytest.fixture(scope="module")
def data(run: Run) -> Timeline:
    return timeline(run.report, run.history, run.context, nodes=["redis1"])


def test_a_hold_ends_for_its_worker_and_for_the_service(run: Run) -> None:
    truth = run.truth
    bar = next(b for b in bars(View(run.history, run.context)) if b.granted_ns == truth.granted_ns)
    assert bar.process == truth.worker
    assert bar.believed_ns == truth.believed_ns
    assert bar.why == "released"
    assert bar.lease_sure_ns == bar.asked_ns + TTL_NS
    assert bar.lease_last_ns == bar.granted_ns + TTL_NS


def test_a_renewed_hold_lasts_from_its_last_renewal() -> None:
    ops = [
        Op(0, 10, 0, "invoke", "acquire", "k", {"hold": "a", "ttl_ns": 100}),
        Op(1, 20, 0, "ok", "acquire", "k", {"hold": "a"}),
        Op(2, 50, 0, "invoke", "renew", "k", {"hold": "a"}),
        Op(3, 60, 0, "ok", "renew", "k", {"hold": "a"}),
        Op(4, 300, 0, "invoke", "acquire", "k", {"hold": "b", "ttl_ns": 100}),
    ]
    (bar,) = bars(View(History(ops), CheckContext()))
    assert (bar.lease_sure_ns, bar.lease_last_ns) == (150, 160)


def test_a_renewal_of_unknown_outcome_leaves_the_end_open() -> None:
    ops = [
        Op(0, 10, 0, "invoke", "acquire", "k", {"hold": "a", "ttl_ns": 100}),
        Op(1, 20, 0, "ok", "acquire", "k", {"hold": "a"}),
        Op(2, 50, 0, "invoke", "renew", "k", {"hold": "a"}),
        Op(3, 60, 0, "info", "renew", "k", {"hold": "a"}),
    ]
    (bar,) = bars(View(History(ops), CheckContext()))
    assert bar.lease_last_ns is None


def test_a_grant_of_unknown_outcome_has_a_lease_but_no_belief() -> None:
    ops = [
        Op(0, 10, 0, "invoke", "acquire", "k", {"hold": "a", "ttl_ns": 100}),
        Op(1, 20, 0, "info", "acquire", "k", {"hold": "a"}),
        Op(2, 30, 4, "invoke", "release", "k", {"hold": "a"}),
        Op(3, 40, 4, "ok", "release", "k", {"hold": "a"}),
    ]
    (bar,) = bars(View(History(ops), CheckContext(workers=4)))
    assert bar.believed_ns is None
    assert bar.lease_from_ns is not None
    assert bar.lease_last_ns == 40


def test_overlaps_are_those_that_the_checker_counts(run: Run, data: Timeline) -> None:
    exclusion = next(r for r in run.report.results if r.checker == "exclusion")
    believed = [o for o in data.overlaps if o.kind == "belief"]
    assert len(believed) == exclusion.stats["overlaps"] > 0
    assert not [o for o in data.overlaps if o.kind == "lease"]
    assert believed[0].first.process == run.truth.worker
    assert believed[0].start_ns == run.truth.next_granted_ns


def test_a_double_grant_is_an_overlap_at_the_service() -> None:
    ops = []
    for index, (time, process, kind) in enumerate(
        [(10, 0, "invoke"), (20, 0, "ok"), (30, 1, "invoke"), (40, 1, "ok")]
    ):
        value = {"hold": str(process), "ttl_ns": 1000}
        ops.append(Op(index, time, process, kind, "acquire", "k", value))
    view = View(History([*ops, Op(4, 500, 2, "invoke", "acquire", "k", {"hold": "c"})]),
                CheckContext())  # fmt: skip
    kinds = {o.kind: (o.start_ns, o.end_ns) for o in overlaps_of(view, bars(view))}
    assert kinds == {"belief": (40, 500), "lease": (40, 1010)}


def test_stale_writes_are_those_that_the_checker_found(run: Run, data: Timeline) -> None:
    fencing = next(r for r in run.report.results if r.checker == "fencing")
    stale = [write for write in data.writes if write.how == STALE]
    assert len(stale) == fencing.stats["stale_accepted"] == 1
    assert (stale[0].time_ns, stale[0].process) == (run.truth.stale_ns, run.truth.worker)


def test_writes_of_a_history_alone_are_judged_by_their_tokens() -> None:
    ops = []
    for place, (token, kind) in enumerate([(1, "ok"), (3, "ok"), (2, "ok"), (1, "fail")]):
        ops.append(Op(2 * place, 10 * place, place, "invoke", "write", "r", {"token": token}))
        ops.append(Op(2 * place + 1, 10 * place + 5, place, kind, "write", "r", {"token": token}))
    view = View(History(ops), CheckContext())
    how = [write.how for write in writes_of(view, [], CheckContext())]
    assert how == [ACCEPTED, ACCEPTED, STALE, REFUSED]


def test_the_page_opens_on_what_broke(run: Run, data: Timeline) -> None:
    start, end = data.meta["focus"]
    truth = run.truth
    assert start <= truth.granted_ns / 1e6
    assert end >= truth.stale_ns / 1e6
    assert data.meta["rows"] == ["w0", "w1", "w2", "w3"]
    assert data.meta["nodes"] == [{"label": "redis1", "faults": []}]


def test_harm_comes_first(run: Run) -> None:
    sides = [anomaly.side for _, anomaly in worst(run.report.results)]
    assert sides[0] is Side.RESOURCE
    assert set(sides[1:]) == {Side.CLIENT}


def test_the_four_answers_name_who_when_which_and_what(run: Run, data: Timeline) -> None:
    truth, told = run.truth, story(data.marks[0], data, run.report)
    holder, lease, stale, fault = (answer for _, answer in told.answers)
    who = f"w{truth.worker}"
    assert who in told.broke
    assert milliseconds(truth.stale_ns) in told.broke
    assert milliseconds(truth.granted_ns) in holder
    assert milliseconds(truth.granted_ns + TTL_NS) in lease
    assert f"write of {who} to r0" in stale
    assert milliseconds(truth.stale_ns) in stale
    assert f"#0 worker-pause on {who}" in fault
    assert milliseconds(truth.pause_ns[0]) in fault


def test_without_a_fault_none_is_blamed(run: Run) -> None:
    report: RunReport = msgspec.structs.replace(run.report, faults=[])
    data = timeline(report, run.history, run.context)
    told = story(data.marks[0], data, report)
    assert told.answers[3][1] == "None: no fault was under way."


def test_a_history_without_holds_keeps_the_checkers_words(run: Run) -> None:
    ops = [msgspec.structs.replace(op, value={}) for op in run.history.ops]
    data = timeline(run.report, History(ops), CheckContext(workers=4))
    told = story(data.marks[0], data, run.report)
    assert told.broke.startswith("key 'r0': a write of w3 was accepted at 227.469 ms, after the")
    assert told.broke.count("process") == 0, "workers are called as on the timeline"
    assert "names no holds" in told.answers[0][1]


def test_the_diagram_follows_the_order_of_events(run: Run, data: Timeline) -> None:
    told = story(data.marks[0], data, run.report)
    diagram = sequence(told)
    names = [line.name for line in diagram.lines]
    assert names[-2:] == ["lock k0", "resource r0"]
    assert f"w{run.truth.worker}" in names
    heights = [row.y for row in diagram.rows]
    assert heights == sorted(heights)
    texts = [row.text for row in diagram.rows]
    over = texts.index(f"lease of w{run.truth.worker} is over")
    begins, stale = (
        texts.index("worker-pause begins"),
        next(place for place, text in enumerate(texts) if "STALE" in text),
    )
    assert begins < over < stale
    assert diagram.rows[stale].red
    asleep = next(line for line in diagram.lines if line.name == f"w{run.truth.worker}").asleep
    assert len(asleep) == 1


def test_an_answer_that_came_after_something_else_has_its_own_row(run: Run, data: Timeline) -> None:
    told = story(data.marks[0], data, run.report)
    long = Step(
        time_ns=0, end_ns=100, kind="message", actor="w0", target="lock", text="acquire",
        reply="granted",
    )  # fmt: skip
    told.steps = [long, msgspec.structs.replace(long, time_ns=10, end_ns=20, actor="w1")]
    texts = [row.text for row in sequence(told).rows]
    assert texts == ["acquire", "acquire → granted", "granted"]


@pytest.mark.parametrize(
    ("target", "node"),
    [("w3", None), ("redis1", "redis1"), ("w3-redis1", "redis1"), ("wal", "wal")],
)
def test_targets_name_workers_nodes_and_links(target: str, node: str | None) -> None:
    assert node_of(target) == node
    assert is_worker("w12")
    assert not is_worker("wal")


def test_a_link_fault_stands_in_its_nodes_row(run: Run) -> None:
    fault = FaultWindow(id=4, kind="sever", targets=["w0-redis1", "w0-redis2"], start_ns=5)
    report = msgspec.structs.replace(run.report, faults=[fault])
    data = timeline(report, run.history, run.context)
    assert data.meta["nodes"] == [
        {"label": "redis1", "faults": [4]},
        {"label": "redis2", "faults": [4]},
    ]


def test_waits_are_counted_once(run: Run) -> None:
    found = waits(View(run.history, run.context))
    assert sum(bar["count"] for bar in found.bins) == sum(row["grants"] for row in found.workers)
    assert [row["name"] for row in found.workers] == ["w0", "w1", "w2", "w3"]
    assert sum(row["share"] for row in found.workers) == pytest.approx(100, abs=2)


def test_bars_and_ticks_share_one_axis() -> None:
    bins, ticks = histogram([0.5, 5.0, 50.0, 1000.0])
    assert [tick["label"] for tick in ticks] == ["100 µs", "1 ms", "10 ms", "100 ms", "1 s"]
    assert sum(bar["count"] for bar in bins) == 4
    assert bins[-1]["count"] == 1


def test_a_double_grant_names_the_two_and_nobody_else(run: Run) -> None:
    ops = []
    for index, (time, process, kind, f) in enumerate(
        [
            (10, 0, "invoke", "acquire"), (20, 0, "ok", "acquire"),
            (30, 0, "invoke", "release"), (40, 0, "ok", "release"),
            (50, 1, "invoke", "acquire"), (60, 1, "ok", "acquire"),
            (70, 2, "invoke", "acquire"), (80, 2, "ok", "acquire"),
        ]
    ):  # fmt: skip
        ops.append(Op(index, time, process, kind, f, "k", {"hold": str(process), "ttl_ns": 1000}))
    twice = Anomaly(kind="double-grant", side=Side.SERVICE, ops=[1, 3, 5, 7], key="k", says="twice")
    result = Result(checker="lease", valid=Valid.FALSE, anomalies=[twice])
    report = msgspec.structs.replace(run.report, results=[result], faults=[])
    data = timeline(report, History(ops), CheckContext())
    told = story(data.marks[0], data, report)
    assert "granted k to w2" in told.broke
    assert "while w1" in told.broke
    assert told.answers[0][1].startswith("Both: w1 (hold 1)")
    once = msgspec.structs.replace(twice, ops=[1, 3])
    report.results = [msgspec.structs.replace(result, anomalies=[once])]
    data = timeline(report, History(ops), CheckContext())
    assert story(data.marks[0], data, report).broke == "twice", "nobody held at once: its own words"
