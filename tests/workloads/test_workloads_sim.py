"""Every workload in virtual time: the correct lock is silent, a broken one is caught."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from harness import plan as plans
from harness.core.clock import NS_PER_MS
from harness.core.errors import UserError
from harness.core.result import Valid
from harness.generator import Completion, EachWorker, Generator, SectionSpec
from harness.report.document import RunReport
from harness.run import execute
from harness.scenario import json_schema, parse
from harness.workloads.registry import WORKLOADS

ROOT = Path(__file__).resolve().parents[2]
SEEDS = range(int(os.environ.get("LOCKHAVOC_WORKLOAD_SEEDS", "6")))
PAUSE = {
    "kind": "worker-pause", "target": "holder", "when": "held", "start_ms": [200, 600],
    "every_ms": [100, 300], "count": 2, "duration_ms": [500, 900],
}  # fmt: skip


def run(
    library: str,
    kind: str,
    seed: int,
    store: Path,
    *,
    params: dict[str, Any] | None = None,
    faults: tuple[dict[str, Any], ...] = (),
    mode: str = "unfenced",
    **workload: Any,
) -> RunReport:
    scenario = parse(
        {
            "name": f"workload-{kind}",
            "claim": {
                "verdict": "holds",
                "tolerates": ["exclusion"],
                "why": "a holder that is paused or too long believes on",
            },
            "backend": {"name": "sim"},
            "client": {"library": library},
            "workload": {
                "kind": kind, "params": params or {}, "workers": 4, "ttl_ms": 400,
                "hold_ms": [10, 40], "acquire_timeout_ms": 1500, **workload,
            },
            "resource": {"mode": mode},
            "faults": list(faults),
            "run": {"time_ms": 2500, "recovery_ms": 2500},
        }
    )  # fmt: skip
    return execute(
        scenario, plans.draw(scenario, seed), source="", runtime="sim", store_dir=store, argv=[],
        replay=["x"], progress=lambda _: None,
    )  # fmt: skip


CORRECT: dict[str, dict[str, Any]] = {
    "cancel": {"faults": (PAUSE,)},
    "churn": {"faults": (PAUSE,), "params": {"hold_ms": 10}},
    "crash": {"faults": (PAUSE,), "params": {"every": 3}},
    "elect": {"faults": (PAUSE,), "renew_every_ms": 100, "params": {"term_ms": 600, "beat_ms": 80}},
    "job": {"faults": (PAUSE,)},
    "longhold": {},
    "multi": {"keys": 3, "params": {"locks": 2}},
    "mutex": {"faults": (PAUSE,)},
    "nonblock": {"faults": (PAUSE,)},
    "renew": {"faults": (PAUSE,)},
    "rw": {"library": "recipe-redis-rw", "mode": "unfenced"},
    "semaphore": {"library": "recipe-redis-semaphore", "mode": "none", "faults": (PAUSE,)},
    "update": {"faults": (PAUSE,)},
}


def test_every_workload_is_tried_here() -> None:
    # The rest needs processes to share (test_shared.py).
    kinds = [WORKLOADS.load(name)() for name in WORKLOADS.names()]
    alone = [kind.kind for kind in kinds if kind.sharing(kind.settle({})) is None]
    assert sorted(CORRECT) == alone
    assert sorted(BROKEN) == alone


@pytest.mark.parametrize("kind", sorted(CORRECT))
def test_the_correct_lock_is_silent(kind: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        options = {"library": "recipe-redis-fenced", "mode": "fenced", **CORRECT[kind]}
        report = run(options.pop("library"), kind, seed, tmp_path, **options)
        assert report.verdict == "as-claimed", (seed, report.says)
        counts = next(r for r in report.results if r.checker == "stats").stats["counts"]
        done = counts["release" if kind == "semaphore" else "write"]
        assert done["ok"] >= 2, "the work was done"


BROKEN: dict[str, tuple[str, str, dict[str, Any]]] = {
    "cancel": ("broken-release-without-check", "lease", {"faults": (PAUSE,)}),
    "churn": ("broken-release-without-check", "lease", {"faults": (PAUSE,)}),
    "crash": ("broken-no-ttl", "recovery", {"params": {"every": 1}, "acquire_timeout_ms": 4000}),
    "elect": ("recipe-redis", "fencing", CORRECT["elect"]),
    "job": ("recipe-redis", "effects", {"params": {"look": "no"}}),
    "longhold": ("broken-release-without-check", "honesty", {}),
    "multi": ("recipe-redis", "deadlock", {"keys": 3, "params": {"order": "any"}}),
    "mutex": ("broken-constant-token", "lease", {"faults": (PAUSE,), "hold_ms": [200, 300]}),
    "nonblock": ("broken-release-without-check", "lease", {"faults": (PAUSE,)}),
    "renew": ("broken-renewal-recreates", "lease", {"faults": (PAUSE,)}),
    "rw": ("broken-rw-writer-among-readers", "lease", {}),
    "semaphore": ("broken-semaphore-one-too-many", "lease", {"mode": "none"}),
    "update": ("recipe-redis", "effects", {"faults": (PAUSE,)}),
}


@pytest.mark.parametrize("kind", sorted(BROKEN))
def test_a_broken_lock_or_user_is_caught(kind: str, tmp_path: Path) -> None:
    library, checker, options = BROKEN[kind]
    caught = 0
    for seed in SEEDS:
        report = run(library, kind, seed, tmp_path, **options)
        found = next(result for result in report.results if result.checker == checker)
        caught += found.valid is Valid.FALSE
        if caught:
            assert report.verdict == "violation"
            break
    assert caught, f"{checker} was silent on all of {len(SEEDS)} seeds"


def test_the_same_seed_gives_the_same_run(tmp_path: Path) -> None:
    for kind in ("multi", "job", "elect"):
        made = [
            Path(run("recipe-redis", kind, 5, tmp_path / n, **_plain(kind)).run_dir) for n in "ab"
        ]
        assert len({(path / "history.jsonl").read_bytes() for path in made}) == 1, kind


def _plain(kind: str) -> dict[str, Any]:
    return {name: value for name, value in CORRECT[kind].items() if name != "faults"}


# ---- the generators, without any world ---------------------------------------------------------


SPEC = SectionSpec(
    seed=3, keys=4, ttl_ms=300, timeout_ms=500, hold_ns=(10, 20), idle_ns=(0, 5)
)  # fmt: skip


def schedule(
    kind: str, params: dict[str, Any], *, refuse: frozenset[str] = frozenset(), steps: int
) -> list[tuple[str, str]]:
    """(operation, key) of one worker whose operations take 1 ms; ``refuse``: keys that are busy."""
    made = WORKLOADS.load(kind)()
    leaf = made.leaf(SPEC, made.settle(params), worker=0, until_ns=10**12)
    generator: Generator = EachWorker((leaf,))
    now_ns, found = 0, []
    for _ in range(steps):
        step, generator = generator.op(0, now_ns)
        assert step is not None
        now_ns = max(now_ns, step.at_ns) + NS_PER_MS
        outcome = "fail" if step.do == "acquire" and step.key in refuse else "ok"
        found.append((step.do, step.key))
        generator = generator.update(Completion(0, now_ns, step.do, outcome))
    return found


def test_several_locks_are_taken_in_order_and_given_back_in_reverse() -> None:
    found = schedule("multi", {"locks": 3}, steps=9)
    taken = [key for do, key in found[:3]]
    assert taken == sorted(taken)
    assert len(set(taken)) == 3
    assert [do for do, _ in found] == ["acquire"] * 3 + ["write"] * 3 + ["release"] * 3
    assert [key for _, key in found[6:]] == taken[::-1]


def test_a_refused_lock_gives_back_the_others() -> None:
    first = schedule("multi", {"locks": 3}, steps=3)
    found = schedule("multi", {"locks": 3}, refuse=frozenset({first[2][1]}), steps=5)
    assert [do for do, _ in found] == ["acquire"] * 3 + ["release"] * 2
    assert found[3][1] == first[1][1]
    assert found[4][1] == first[0][1]


def test_a_term_writes_at_every_beat() -> None:
    found = [do for do, _ in schedule("elect", {"term_ms": 500, "beat_ms": 100}, steps=7)]
    term = found[: found.index("release") + 1]
    assert term[0] == "acquire"
    assert set(term[1:-1]) == {"write"}
    assert 4 <= len(term[1:-1]) <= 5, "a term lasts 400 to 500 ms"


def test_a_tick_that_is_done_is_left_alone() -> None:
    made = WORKLOADS.load("job")()
    leaf = made.leaf(SPEC, made.settle({}), worker=0, until_ns=10**12)
    step, leaf = leaf.op(0, 0)
    assert step is not None
    leaf = leaf.update(Completion(0, step.at_ns, "acquire", "ok"))
    for tick, then in ((1, "release"), (0, "write")):
        read = Completion(0, step.at_ns, "read", "ok", value={"value": {"tick": tick, "write": 1}})
        following, _ = leaf.update(read).op(0, step.at_ns)
        assert following is not None
        assert following.do == then
        assert following.tick == (1 if then == "write" else None)


@pytest.mark.parametrize(
    ("workload", "says"),
    [
        ({"kind": "mutx"}, "workload.kind: unknown workload 'mutx'; did you mean 'mutex'"),
        ({"kind": "job", "params": {"tik_ms": 5}}, "workload.params.tik_ms: unknown parameter"),
        ({"kind": "multi", "params": {"order": "all"}}, "workload.params.order: 'all'"),
        ({"kind": "churn", "params": {"hold_ms": -1}}, "workload.params.hold_ms: -1 ms"),
    ],
)
def test_mistakes_are_named(workload: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says.replace("[", r"\[")):
        parse({"name": "x", "claim": {"verdict": "holds"}, "client": {"library": "redis-py"},
               "workload": workload})  # fmt: skip


def test_the_schema_lists_the_workloads() -> None:
    assert json_schema()["$defs"]["Workload"]["properties"]["kind"]["enum"] == WORKLOADS.names()


def test_each_workload_has_a_scenario_for_a_real_server() -> None:
    used = set()
    for path in (ROOT / "scenarios").glob("*/*.toml"):
        used.add(tomllib.loads(path.read_text()).get("workload", {}).get("kind", "mutex"))
    assert used >= set(WORKLOADS.names())
