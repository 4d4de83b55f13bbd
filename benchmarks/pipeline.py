"""How many operations a second the pipeline takes on one core, in virtual time.

    python benchmarks/pipeline.py [--workers 8] [--seconds 5] [--json]

Generator, interpreter, simulation and store do all of their work, only waiting costs nothing; the
checkers are left out (they have tables of their own).  One operation is an invoke and its
completion.  CPU seconds of this process are counted, not wall time.
"""

from __future__ import annotations

import argparse
import json
import resource as usage
import tempfile
import time
from pathlib import Path

from harness import plan as plans
from harness import run as runs
from harness.core.history import Type
from harness.scenario import parse

LOCKS = {
    "lock alone": ("recipe-redis", "none"),
    "fenced lock and writes to a fenced resource": ("recipe-redis-fenced", "fenced"),
}


def measure(workers: int, virtual_s: int, lock: str = "lock alone") -> dict[str, float]:
    """One run without faults: {"operations", "cpu_s", "ops_per_s", "rss_mib"}."""
    library, resource_mode = LOCKS[lock]
    scenario = parse(
        {
            "name": "bench-pipeline",
            "claim": {"verdict": "holds"},
            "backend": {"name": "sim"},
            "client": {"library": library},
            "workload": {
                "workers": workers,
                "keys": workers,
                "ttl_ms": 1000,
                "hold_ms": [0, 0],
                "idle_ms": [0, 0],
            },
            "resource": {"mode": resource_mode},
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
    rss_mib = usage.getrusage(usage.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "operations": completed,
        "cpu_s": round(cpu_s, 2),
        "ops_per_s": round(completed / cpu_s),
        "rss_mib": round(rss_mib),
    }


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=5, help="virtual seconds")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = {lock: measure(args.workers, args.seconds, lock) for lock in LOCKS}
    if args.json:
        print(json.dumps(found))
        return
    print("| what | workers | operations | CPU s | operations a CPU second | peak MiB |")
    print("|---|---|---|---|---|---|")
    for lock, row in found.items():
        cells = "{operations} | {cpu_s} | {ops_per_s} | {rss_mib}".format(**row)
        print(f"| {lock} | {args.workers} | {cells} |")


if __name__ == "__main__":
    main()
