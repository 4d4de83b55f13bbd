"""One of several clusters that run at the same time: what is done to it, or what it feels of that.

    play("a", "redis-single", folder, others=2, hit=True)      # in a process of its own

All meet when their clusters are up.  Then the server of the one that is hit has its clock turned,
its link cut and is killed and wiped, each with evidence; the others write, read, ask and look at
their clocks until that is over.  What each saw is in ``folder/<name>.json``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compose.registry import RUNTIMES
from compose.server_node import ServerNode
from compose.waiting import wait_until
from harness.core.clock import NS_PER_MS, MonotonicClock
from harness.core.protocols import Cluster, Markable, Node
from harness.ledger import FileLedger
from nemesis.clockshim import build
from tests.nemesis.conformance import make
from tests.nemesis.worlds import TestWorld

MEET_S = 120.0  # three clusters on a busy machine
ECHO_MS = 20_000  # a machine that is busy is late, and lateness is no disturbance
STORM = (("clock-jump", "redis"), ("sever", "w0-redis"), ("node-restart-empty", "redis"))
_CLOCK = MonotonicClock()


def play(
    name: str, backend: str, folder: Path, *, others: int, hit: bool, runtime: str = "process"
) -> None:
    """Brings the cluster up, takes part, takes it down; AssertionError if the others never come."""
    run_dir = folder / name
    run_dir.mkdir()
    ledger = FileLedger(run_dir, _CLOCK)
    maker = RUNTIMES.load(runtime)()
    maker.clock_shim = build.ensure()
    cluster: Cluster = maker.up(backend, {}, workers=2, run_dir=run_dir, ledger=ledger)
    try:
        _meet(folder, "up", name, others + 1)
        seen = _look(cluster)
        begun_ns = _CLOCK.now()
        if hit:
            seen["storm"] = _storm(TestWorld(cluster, [], backend=backend, runtime=runtime))
            (folder / "over").touch()
        else:
            seen["history"] = _watch(cluster, (folder / "over").exists)
        seen |= {"from_ns": begun_ns, "to_ns": _CLOCK.now(), "facts_after": _look(cluster)["facts"]}
        _meet(folder, "seen", name, others + 1)
    finally:
        cluster.down()
        ledger.close()
    lines = (run_dir / "faults.jsonl").read_text().splitlines()
    steps = [step for line in lines for step in json.loads(line).get("steps", [])]
    seen["steps"] = [json.dumps(step, sort_keys=True) for step in steps]
    (folder / f"{name}.json").write_text(json.dumps(seen))


def _meet(folder: Path, what: str, name: str, count: int) -> None:
    (folder / f"{what}-{name}").touch()
    there = wait_until(lambda: len(list(folder.glob(f"{what}-*"))) >= count, timeout_s=MEET_S)
    assert there, f"{name}: the others were not {what} within {MEET_S} s"


def _look(cluster: Cluster) -> dict[str, Any]:
    facts = {name: node.facts() for name, node in cluster.nodes.items()}
    ports = [link.port for link in cluster.links]
    ports += [int(getattr(node, "port", 0)) for node in cluster.nodes.values()]
    return {
        "facts": {name: [fact["role"], fact["run_id"]] for name, fact in facts.items()},
        "ports": ports,
    }


def _storm(world: TestWorld) -> list[str]:
    says = []
    for kind, target in STORM:
        fault = make(kind)
        assert fault.can(world) is None
        fault.inject(world, [target])
        evidence = fault.evidence(world, [target])
        fault.heal(world, [target])
        assert evidence.bit, evidence.says
        healed = fault.healed(world, [target])
        assert healed.bit, healed.says
        says.append(f"{kind}: {evidence.says}")
    return says


def _watch(cluster: Cluster, over: Callable[[], bool]) -> list[dict[str, Any]]:
    """Rounds of looks at each node and link until it is over, and one more; what was wrong is
    named."""
    history = []
    while True:
        last = over()
        wrong = [f"{n}: {lack}" for n, node in cluster.nodes.items() for lack in _lacks(node)]
        for link in cluster.links:
            outcome = link.probe(ECHO_MS).outcome
            if link.toxics() or outcome != "answered":
                wrong.append(f"{link.name}: {link.toxics()}, echo {outcome}")
        history.append({"at_ns": _CLOCK.now(), "wrong": wrong})
        if last:
            return history


def _lacks(node: Node) -> list[str]:
    lacks = []
    status, outcome = node.status(), node.probe(ECHO_MS).outcome
    if (status.state, outcome) != ("running", "answered"):
        lacks.append(f"{status.state}, echo {outcome}")
    assert isinstance(node, Markable)
    mark = f"mark-{_CLOCK.now()}"
    node.leave_mark(mark)
    if not node.has_mark(mark):
        lacks.append("lost a write")
    if isinstance(node, ServerNode) and node.family.name != "etcd":  # which tells no time
        told = node.clock_reading()
        if abs(told.offset_ns) > told.error_ns + 50 * NS_PER_MS:
            lacks.append(f"its clock is {told.offset_ns} ns off")
    return lacks
