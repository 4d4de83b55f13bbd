"""liveness, fairness, vacuity, stats and exceptions on small runs; the registry."""

from __future__ import annotations

import pytest

from checkers.exceptions import Exceptions
from checkers.fairness import Fairness, bypasses, jain
from checkers.liveness import Liveness
from checkers.monitors.span import by_key
from checkers.registry import CHECKERS
from checkers.stats import Stats
from checkers.vacuity import Vacuity
from harness.core.history import History
from harness.core.result import Valid
from tests.checkers.runs import Run, context, fault


def contended() -> Run:
    run = Run().op(0, "acquire", 0, 1, hold="a").op(1, "acquire", 0.5, 4, hold="b")
    return run.op(0, "release", 2, 3, hold="a").op(1, "release", 5, 6, hold="b")


def test_every_registered_checker_answers_an_empty_history_with_unknown() -> None:
    for name in CHECKERS.names():
        checker = CHECKERS.load(name)()
        result = checker.check(History([]), context())
        assert result.checker == checker.name == name
        assert result.valid is Valid.UNKNOWN
        assert result.safety is checker.safety


def test_recovery_within_and_beyond_the_bound() -> None:
    run = contended().op(2, "acquire", 20, 31, hold="c")
    fault_ = fault("node-pause", "redis", 15, 25)
    good = Liveness().check(run.history(), context(faults=[fault_], recovery_ms_max=10))
    assert good.valid is Valid.TRUE
    assert good.stats["recovery_ms"] == 6.0
    bad = Liveness().check(run.history(), context(faults=[fault_], recovery_ms_max=5))
    assert bad.valid is Valid.FALSE
    assert bad.anomalies[0].kind == "slow-recovery"
    assert bad.safety is False


def test_stuck_waiter_and_a_run_that_ended_too_early() -> None:
    run = contended().op(2, "acquire", 7, None, hold="c").op(0, "read", 40, 41, key="r0")
    stuck = Liveness().check(run.history(), context(recovery_ms_max=20))
    assert [a.kind for a in stuck.anomalies] == ["stuck-waiter"]
    late = fault("sever", "w0-redis", 10, 38)
    early = Liveness().check(run.history(), context(faults=[late], recovery_ms_max=20))
    assert early.valid is Valid.UNKNOWN
    never = fault("sever", "w0-redis", 10, None)
    assert Liveness().check(run.history(), context(faults=[never])).valid is Valid.UNKNOWN


def test_vacuity_wants_contention_and_faults_that_bit() -> None:
    history = contended().history()
    assert Vacuity().check(history, context()).valid is Valid.TRUE
    lonely = Run().op(0, "acquire", 0, 1, hold="a").op(0, "release", 2, 3, hold="a").history()
    assert [a.kind for a in Vacuity().check(lonely, context()).anomalies] == ["no-contention"]
    toothless = fault("jam", "w0-redis", 1, 2, bit=False)
    unhealed = fault("jam", "w0-redis", 1, 2, healed=False)
    for kind, known in (
        ("fault-not-injected", context(planned_faults=1)),
        ("fault-without-evidence", context(planned_faults=1, faults=[toothless])),
        ("fault-not-healed", context(planned_faults=1, faults=[unhealed])),
    ):
        result = Vacuity().check(history, known)
        assert result.valid is Valid.UNKNOWN
        (anomaly,) = result.anomalies
        assert anomaly.kind == kind
        for part in ("Why it matters", "What to change", "How to silence"):
            assert part in anomaly.says


@pytest.mark.parametrize(
    ("when", "start", "hits"),
    [("held", 1.5, True), ("held", 10, False), ("waiting", 0.2, False), ("", 10, True)],
)
def test_aim_of_a_fault(when: str, start: float, hits: bool) -> None:
    aimed = fault("worker-pause", "w0", start, start + 0.1, when=when)
    run = contended().op(3, "read", 20, 21, key="r0")
    if when == "waiting":
        aimed.start_ns = aimed.end_ns = 10_000_000
    result = Vacuity().check(run.history(), context(planned_faults=1, faults=[aimed]))
    assert (result.valid is Valid.TRUE) is hits
    assert hits or result.anomalies[0].kind == "aim-missed"


def test_stats_count_by_outcome() -> None:
    run = contended().op(2, "acquire", 7, 8, kind="fail", error="busy")
    run.op(3, "acquire", 9, None)
    stats = Stats().check(run.history(), context()).stats
    assert stats["counts"]["acquire"] == {"ok": 2, "fail": 1, "open": 1}
    assert stats["latency_ms"]["release"]["max"] == 1.0
    assert stats["grants"] == 2
    assert stats["wait_ms"]["max"] == 3.5


def test_exceptions_are_grouped_and_harness_failures_are_unknown() -> None:
    run = contended()
    for n in range(3):
        run.op(2, "acquire", 10 + 2 * n, 11 + 2 * n, kind="info", error=f"timeout to 10.0.0.{n}")
    result = Exceptions().check(run.history(), context())
    assert result.valid is Valid.TRUE
    ((text, group),) = result.stats["kinds"].items()
    assert group["count"] == 3
    assert text == "timeout to #.#.#.#"
    broken = Exceptions().check(run.history(), context(failures=["heal of jam: no answer"]))
    assert broken.valid is Valid.UNKNOWN
    assert broken.anomalies[0].kind == "harness-failure"


def test_fairness_counts_who_was_passed_by() -> None:
    run = Run().op(0, "acquire", 0, 1, hold="a").op(1, "acquire", 2, 20, hold="b")
    run.op(0, "release", 3, 4, hold="a").op(2, "acquire", 5, 6, hold="c")
    run.op(2, "release", 7, 8, hold="c").op(2, "acquire", 9, 10, hold="d")
    run.op(2, "release", 11, 12, hold="d").op(1, "release", 21, 22, hold="b")
    result = Fairness().check(run.history(), context())
    assert result.valid is Valid.TRUE
    assert result.stats["bypass_max"] == 2
    assert result.stats["grants_per_worker"] == {"0": 1, "1": 1, "2": 2}
    assert result.stats["permits_leaked"] == 0
    (spans,) = by_key(run.history().intervals(), {"acquire": "acquire"}).values()
    assert sorted(bypasses(spans)) == [0, 0, 0, 2]
    lonely = Run().op(0, "acquire", 0, 1, hold="a")
    assert Fairness().check(lonely.history(), context()).valid is Valid.UNKNOWN


def test_jain() -> None:
    assert jain([5, 5, 5, 5]) == 1.0
    assert jain([8, 0, 0, 0]) == 0.25
    assert jain([]) == 1.0


def test_leaks_and_orphans_without_leases() -> None:
    run = contended().op(2, "acquire", 7, 8, hold="c").op(3, "acquire", 7, 9, kind="info", hold="d")
    stats = Fairness().check(run.history(), context()).stats
    assert (stats["permits_leaked"], stats["orphans"]) == (1, 1)
