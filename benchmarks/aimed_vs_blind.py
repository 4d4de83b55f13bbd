"""What aiming is worth: faults and seconds until the first violation, aimed and blind.

    python benchmarks/aimed_vs_blind.py [--seeds 20] [--runtime sim|process] [--json]

Five situations that are known to go wrong.  *Aimed*: the fault waits for its moment and hits the
holder, or acts while somebody holds and another waits.  *Blind*: the same fault with the same
durations, on a client drawn at random at a time drawn at random, as nemeses do that do not know
who holds what.  Both get up to ``FAULTS_MAX`` faults in one run; what is counted is how many had
begun, and how many seconds had passed, when the history first shows a violation by the checker of
the claim.

The lock is held for about a quarter of the time, by one of eight clients.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import plan as plans
from harness import run as runs
from harness.core.clock import NS_PER_S
from harness.core.history import History
from harness.report.document import RunReport
from harness.scenario import Scenario, parse
from harness.store import read_history

FAULTS_MAX = 30
GAP_MS = [500, 3500]
WORKLOAD: dict[str, Any] = {
    "workers": 8,
    "ttl_ms": 1000,
    "hold_ms": [60, 140],
    "idle_ms": [1500, 3500],
    "acquire_timeout_ms": 5000,
}
RENEWING = {"ttl_ms": 800, "hold_ms": [1000, 1400], "idle_ms": [25_000, 45_000]}
LONG = {"ttl_ms": 6000, "hold_ms": [800, 1200], "idle_ms": [20_000, 40_000]}
# situation -> (checker of the claim, fault, aim when aimed, target when blind, workload)
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], str, dict[str, Any]]] = {
    "client paused past its lease, writes late": (
        "fencing",
        {"kind": "worker-pause", "duration_ms": [2500, 3000]},
        {"target": "holder", "when": "held"},
        "any-worker",
        {},
    ),
    "client paused while it renews": (
        "exclusion",
        {"kind": "worker-pause", "duration_ms": [1500, 2000]},
        {"target": "holder", "when": "waiting"},
        "any-worker",
        {**RENEWING, "renew_every_ms": 500},
    ),
    "client cut off while it renews": (
        "exclusion",
        {"kind": "jam", "duration_ms": [2500, 3000]},
        {"target": "holder", "when": "waiting"},
        "any-worker",
        {**RENEWING, "renew_every_ms": 250},
    ),
    "server restarts without its data": (
        "lease",
        {"kind": "node-restart-empty", "duration_ms": [50, 100]},
        {"target": "primary", "when": "waiting"},
        "any-node",
        LONG,
    ),
    "keys flushed": (
        "lease",
        {"kind": "flush", "duration_ms": [50, 100]},
        {"target": "primary", "when": "waiting"},
        "any-node",
        LONG,
    ),
}


def scenario_of(case: str, *, aimed: bool, runtime: str) -> Scenario:
    """One situation with its fault repeated, aimed or blind."""
    checker, fault, aim, anyone, workload = CASES[case]
    schedule = {"start_ms": GAP_MS, "every_ms": GAP_MS, "count": FAULTS_MAX}
    persistence = {} if runtime == "sim" else {"persistence": "none"}
    longest_ms = FAULTS_MAX * (GAP_MS[1] + fault["duration_ms"][1])
    return parse(
        {
            "name": "bench-aim",
            "claim": {"verdict": "violation", "by": [checker], "why": case},
            "backend": {"name": "sim" if runtime == "sim" else "redis-single"}
            | ({"options": persistence} if persistence else {}),
            "client": {"library": "recipe-redis"},
            "workload": {**WORKLOAD, **workload},
            "resource": {"mode": "unfenced"},
            "faults": [{**fault, **(aim if aimed else {"target": anyone}), **schedule}],
            "run": {"time_ms": longest_ms, "recovery_ms": 8000},
        }
    )


def measure(case: str, seed: int, *, aimed: bool, runtime: str) -> dict[str, Any]:
    """{"faults", "seconds"} until the first violation, or None in both if there was none."""
    scenario = scenario_of(case, aimed=aimed, runtime=runtime)
    with tempfile.TemporaryDirectory() as folder:
        report = runs.execute(
            scenario,
            plans.draw(scenario, seed),
            source="",
            runtime=runtime,
            store_dir=Path(folder),
            argv=[],
            replay=[],
            progress=lambda _: None,
        )
        history, _ = read_history(Path(report.run_dir))
    shown = list(_shown_at(report, history, CASES[case][0]))
    if not shown:
        return {"faults": None, "seconds": None}
    first_ns = min(shown)
    begun = sum(window.start_ns <= first_ns for window in report.faults)
    return {"faults": begun, "seconds": first_ns / NS_PER_S}


def _shown_at(report: RunReport, history: History, checker: str) -> Iterator[int]:
    """When each anomaly of this checker was complete (ns since the start of the run)."""
    for result in report.results:
        if result.checker == checker:
            for anomaly in result.anomalies:
                yield max(history.ops[index].time for index in anomaly.ops)


def table(seeds: int, runtime: str) -> list[dict[str, Any]]:
    """One row per situation and way; progress on stderr."""
    rows = []
    for case in CASES:
        for aimed in (True, False):
            found = []
            for seed in range(1, seeds + 1):
                found.append(measure(case, seed, aimed=aimed, runtime=runtime))
                print(f"\r{case}, seed {seed}  ", end="", file=sys.stderr, flush=True)
            rows.append({"case": case, "aimed": aimed, **_summary(found)})
    print(file=sys.stderr)
    return rows


def _summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    hits = [one for one in found if one["faults"] is not None]
    return {
        "seeds": len(found),
        "found": len(hits),
        "first": sum(one["faults"] == 1 for one in hits),
        "faults": statistics.median([one["faults"] or FAULTS_MAX + 1 for one in found]),
        "seconds": statistics.median([one["seconds"] for one in hits]) if hits else None,
    }


def main() -> None:
    """Prints the table as Markdown, or as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--runtime", choices=("sim", "process"), default="sim")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = table(args.seeds, args.runtime)
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    print("| situation | faults are | found | by the first fault | median faults | median s |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        seconds = "-" if row["seconds"] is None else f"{row['seconds']:.1f}"
        faults = f"> {FAULTS_MAX}" if row["faults"] > FAULTS_MAX else f"{row['faults']:g}"
        print(
            f"| {row['case']} | {'aimed' if row['aimed'] else 'blind'} "
            f"| {row['found']}/{row['seeds']} | {row['first']}/{row['seeds']} "
            f"| {faults} | {seconds} |"
        )


if __name__ == "__main__":
    main()
