"""Seconds from ``lockhavoc run`` to its first operation, in containers whose images are built.

    python benchmarks/first_operation.py scenarios/*/holder-pause.toml --repeat 3

Each run is a process of its own, as a user would start it; the first line of the history that is an
invoke stops the watch.  Run it on an idle machine: most of the time is spent by the servers.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOOK_AGAIN_S = 0.02


def seconds_to_first_operation(scenario: Path, seed: int) -> tuple[float | None, float]:
    """(until the first operation, until the end); None if there was none."""
    with tempfile.TemporaryDirectory() as store:
        argv = [sys.executable, "-m", "harness.cli", "run", str(scenario), "--runtime", "docker"]
        argv += ["--store", store, "--seed", str(seed), "--quiet"]
        begun, first = time.monotonic(), None
        run = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while run.poll() is None:
            if first is None and _has_begun(Path(store)):
                first = time.monotonic() - begun
            time.sleep(LOOK_AGAIN_S)
        return first, time.monotonic() - begun


def _has_begun(store: Path) -> bool:
    return any(
        b'"type":"invoke"' in history.read_bytes() for history in store.rglob("history.jsonl")
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("scenarios", nargs="+", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    print("| scenario | first operation, s | end, s |\n|---|---|---|")
    for scenario in arguments.scenarios:
        times = [seconds_to_first_operation(scenario, seed) for seed in range(arguments.repeat)]
        firsts = ", ".join("none" if first is None else f"{first:.1f}" for first, _ in times)
        ends = ", ".join(f"{end:.0f}" for _, end in times)
        print(f"| {scenario} | {firsts} | {ends} |", flush=True)


if __name__ == "__main__":
    main()
