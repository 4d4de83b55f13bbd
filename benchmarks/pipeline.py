"""How many operations a second the pipeline takes on one core, in virtual time.

    python benchmarks/pipeline.py [--workers 8] [--seconds 20] [--json]

Generator, interpreter, simulation and store do all of their work, only waiting costs nothing; the
checkers are left out (they have tables of their own).  One operation is an invoke and its
completion.  CPU seconds of this process are counted, not wall time.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

from harness import plan as plans
from harness import run as runs
from harness.core.history import Type
from harness.scenario import parse


def measure(workers: int, virtual_s: int) -> dict[str, float]:
    """One run without faults: {"operations", "cpu_s", "ops_per_s", "rss_mib"}."""
    scenario = parse(
        {
            "name": "bench-pipeline",
            "claim": {"verdict": "holds"},
            "backend": {"name": "sim"},
            "client": {"library": "recipe-redis-fenced"},
            "workload": {
                "workers": workers,
                "keys": workers,
                "ttl_ms": 1000,
                "hold_ms": [0, 0],
                "idle_ms": [0, 0],
            },
            "resource": {"mode": "fenced"},
            "run": {"time_ms": virtual_s * 1000},
        }
    )
    completed = 0

    def analyse(history: object, _: object) -> list[object]:
        nonlocal completed
        completed = sum(op.type != Type.INVOKE for op in history)  # type: ignore[attr-defined]
        return []

    runs.analyse = analyse  # type: ignore[assignment]  # only the pipeline is measured
    with tempfile.TemporaryDirectory() as store:
        began = time.process_time()
        runs.execute(
            scenario,
            plans.draw(scenario, 1),
            source="",
            runtime="sim",
            store_dir=Path(store),
            argv=[],
            replay=[],
            progress=lambda _: None,
        )
        cpu_s = time.process_time() - began
    rss_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "operations": completed,
        "cpu_s": round(cpu_s, 2),
        "ops_per_s": round(completed / cpu_s),
        "rss_mib": round(rss_mib),
    }


def main() -> None:
    """Prints one row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=20, help="virtual seconds")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = measure(args.workers, args.seconds)
    if args.json:
        print(json.dumps(found))
        return
    print("| workers | operations | CPU s | operations a CPU second | peak MiB |")
    print("|---|---|---|---|---|")
    print("| {} | {operations} | {cpu_s} | {ops_per_s} | {rss_mib} |".format(args.workers, **found))


if __name__ == "__main__":
    main()
