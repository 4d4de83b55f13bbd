"""Our checkers and Porcupine v1.3.1 on the same files, in the same run: one Markdown table.

    python benchmarks/checkers_vs_porcupine.py                  # everything, some minutes
    python benchmarks/checkers_vs_porcupine.py --quick          # small files only, for a smoke test
    python benchmarks/checkers_vs_porcupine.py --compiled       # our search in C: see compiled.py

Porcupine comes through its Go module (benchmarks/porcupine, built into a temporary directory; needs
``go`` and the module cache or a proxy).  Each side runs in its own process with the same limits of
time and memory; what is timed is the check alone, not the reading.  The corpus is timed file by
file, the two sides taking turns, and the median round counts, so that a busy machine hits both.

Traps: Porcupine uses all cores where a history has several keys, ours one.  "> 60 s" and "out of
memory" are results, and ratios with them are lower bounds.  ``--memory-gb`` limits address space.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))  # at the end: --compiled puts its package in front

from benchmarks import compiled, lock_histories  # noqa: E402 - after the path to the project is set
from checkers.engine import check, wgl  # noqa: E402
from checkers.interchange import porcupine_corpus  # noqa: E402
from checkers.interchange.jsonl import read_jsonl  # noqa: E402
from checkers.models import make  # noqa: E402
from checkers.monitors import cas, mutex, semaphore  # noqa: E402
from tests.checkers import corpus  # noqa: E402

Row = tuple[str, str, dict[str, Any]]


def child(options: argparse.Namespace) -> None:
    """Checks one file with one of our checkers, and prints what came out as JSON."""
    intervals = read_jsonl(Path(options.file)).intervals()
    before_mb = peak_mb()
    monitors: dict[str, Callable[[], Any]] = {
        "mutex": lambda: mutex.check(intervals),
        "semaphore": lambda: semaphore.check(intervals, k=options.k),
        "cas": lambda: cas.check(intervals),
    }
    model_options = {"k": options.k} if options.model == "semaphore" else {}
    model = make(options.model, **model_options)
    gc.collect()
    gc.freeze()  # the history stays, as it would for any caller; don't walk it again and again
    began = time.perf_counter()
    if options.child == "monitor":
        verdict = monitors[options.model]()
    else:
        verdict = check(intervals, model, budget_s=options.limit, memory_bytes=8 << 30)
    seconds = time.perf_counter() - began
    valid = str(verdict.valid)
    found = {"seconds": seconds, "verdict": valid, "peak_mb": peak_mb(), "base_mb": before_mb}
    print(json.dumps(found))


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def build(folder: Path) -> Path:
    """Porcupine and our small program round it; CalledProcessError if that fails."""
    binary = folder / "porcupine"
    source = ROOT / "benchmarks" / "porcupine"
    subprocess.run(["go", "build", "-o", str(binary), "."], cwd=source, check=True)
    return binary


def limited(argv: list[str], *, seconds: float, memory_gb: int) -> tuple[dict[str, Any], str]:
    """Runs ``argv`` within limits: (its last line as JSON, "" or why there is none)."""

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_gb << 30, memory_gb << 30))

    try:
        done = subprocess.run(
            argv,
            preexec_fn=limits,
            capture_output=True,
            text=True,
            timeout=seconds + 60,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {}, f"> {seconds:.0f} s"
    if done.returncode != 0:
        short = done.stderr[-2000:]
        memory = "out of memory" in done.stderr or "MemoryError" in short or done.returncode == -9
        return {}, f"out of memory ({memory_gb} GB)" if memory else f"failed: {short}"
    return json.loads(done.stdout.splitlines()[-1]), ""


def cell(found: dict[str, Any], why: str, limit: float) -> str:
    if why:
        return why
    verdict = {"Ok": "true", "Illegal": "false"}.get(found["verdict"], found["verdict"]).lower()
    if verdict == "unknown":
        return f"> {limit:.0f} s ({found['peak_mb'] / 1024:.1f} GB)"
    return f"{found['seconds']:.4g} s ({found['peak_mb']:.0f} MB) {verdict}"


def ratio(porcupine: dict[str, Any], why: str, ours: list[dict[str, Any]], limit: float) -> str:
    """How many times longer Porcupine took than the faster of ours that has a verdict."""
    best = [found["seconds"] for found in ours if found.get("verdict") in ("true", "false")]
    if not best:
        return "-"
    if porcupine and porcupine["verdict"] != "Unknown":
        return f"{porcupine['seconds'] / min(best):.3g}"
    return "-" if "memory" in why else f"> {limit / min(best):.3g}"


def rows(folder: Path, *, quick: bool) -> list[Row]:
    """(name, model, how to write it) of the histories; ``quick``: the small ones only."""
    small: list[Row] = [
        ("mutex, violation, 17 unknown", "mutex", {"clients": 5, "unknown": 17}),
        ("mutex, violation, 170 unknown", "mutex", {"clients": 5, "unknown": 170}),
        ("semaphore k=10, 40 clients, violation", "semaphore", {"clients": 40, "permits": 10}),
    ]
    made: list[Row] = []
    for number, (name, model, options) in enumerate(small):
        path = folder / f"small{number}.jsonl"
        lock_histories.write_locks(path, operations=1002, violation=True, seed=number, **options)
        made.append((name, model, {"path": path, "operations": 1002, **options}))
    sizes = (10_000,) if quick else (10_000, 100_000, 300_000)
    for size in sizes:
        path = folder / f"mutex{size}.jsonl"
        lock_histories.write_locks(path, operations=size, clients=10, seed=size)
        made.append(("mutex, good, 10 clients", "mutex", {"path": path, "operations": size}))
    size = 2_000 if quick else 100_000
    for clients in (10, 20):
        path = folder / f"cas{clients}.jsonl"
        lock_histories.write_registers(path, operations=size, clients=clients, seed=1)
        name = f"CAS register, unique values, good, {clients} clients"
        made.append((name, "cas", {"path": path, "operations": size}))
    return made


def histories(binary: Path, folder: Path, options: argparse.Namespace) -> None:
    """The first table: one history a row, three checkers."""
    print("| history | operations | Porcupine | general engine | monitor | Porcupine / ours |")
    print("| --- | --- | --- | --- | --- | --- |")
    limit = options.limit
    for name, model, made in rows(folder, quick=options.quick):
        path, k = str(made["path"]), str(made.get("permits", 1))
        common = ["-model", model, "-k", k, "-timeout", f"{limit:g}s", path]
        theirs, why = limited([str(binary), *common], seconds=limit, memory_gb=options.memory_gb)
        ours, cells = [], []
        for which in ("engine", "monitor"):
            argv = [sys.executable, __file__, "--child", which, "--model", model, "--file", path]
            argv += ["--k", k, "--limit", f"{limit:g}"]
            found, failed = limited(argv, seconds=limit, memory_gb=options.memory_gb)
            ours.append(found)
            cells.append(cell(found, failed, limit))
        times = ratio(theirs, why, ours, limit)
        line = (name, f"{made['operations']:,}", cell(theirs, why, limit), *cells, times)
        print(f"| {' | '.join(line)} |", flush=True)


def corpus_times(binary: Path, rounds: int) -> dict[str, tuple[float, float]]:
    """File -> seconds (Porcupine, ours) of the round whose ratio is the median.

    In each round the two take turns, best of 25 runs each: a busy machine is fast now and slow
    then, so only times of one moment can be compared.
    """
    chosen: dict[str, tuple[float, float]] = {}
    for entry in corpus.VERDICTS["histories"]:
        path = corpus.path_of(entry)
        intervals = porcupine_corpus.read(path).intervals()
        model = make(entry["model"])
        name = "etcd" if entry["model"] == "cas" else "kv"
        gc.collect()
        gc.freeze()  # as above: what was read is not garbage
        found: list[tuple[float, float]] = []
        repeat = 25
        for _ in range(rounds):
            argv = [str(binary), "-model", name, "-repeat", str(repeat), str(path)]
            done = subprocess.run(argv, capture_output=True, text=True, check=True)
            theirs = json.loads(done.stdout)["seconds"]
            ours = 1e9
            for _ in range(repeat):
                began = time.perf_counter()
                result = check(intervals, model)
                ours = min(ours, time.perf_counter() - began)
            if (result.valid == "true") != entry["linearizable"]:
                raise RuntimeError(f"{entry['file']}: {result.valid}")
            found.append((theirs, ours))
            repeat = 25 if theirs < 0.01 else 2  # the slow ones are steady enough
        found.sort(key=lambda pair: pair[1] / pair[0])
        chosen[entry["file"]] = found[len(found) // 2]
    return chosen


def corpus_table(binary: Path, rounds: int) -> None:
    """The second table: the 109 recorded histories."""
    best = corpus_times(binary, rounds)
    print("\n| corpus | files | Porcupine | ours | worst file (ours / Porcupine) |")
    print("| --- | --- | --- | --- | --- |")
    for folder in ("jepsen", "kv"):
        chosen = {name: times for name, times in best.items() if name.startswith(folder)}
        theirs = sum(times[0] for times in chosen.values())
        ours = sum(times[1] for times in chosen.values())
        worst = max(chosen, key=lambda name: chosen[name][1] / chosen[name][0])
        a, b = chosen[worst]
        detail = f"{worst}: {b * 1e6:.0f} / {a * 1e6:.0f} us = {b / a:.2f}"
        print(f"| {folder} | {len(chosen)} | {theirs:.4f} s | {ours:.4f} s | {detail} |")
    over = [name for name, (a, b) in best.items() if b > 3 * a]
    print(f"\nFiles that take ours more than 3 times Porcupine's time: {over or 'none'}")


def again(folder: Path) -> int:
    """This program once more, with the compiled package of ``folder`` in front."""
    env = {**os.environ, "PYTHONPATH": str(compiled.unpacked(folder))}
    argv = [sys.executable, *(arg for arg in sys.argv if arg != "--compiled")]
    return subprocess.run(argv, env=env, check=False).returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small histories only")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds per check")
    parser.add_argument("--memory-gb", type=int, default=12, help="address space per check")
    parser.add_argument("--rounds", type=int, default=5, help="turns per corpus file")
    parser.add_argument("--only", choices=("histories", "corpus"), help="one table only")
    parser.add_argument("--compiled", action="store_true", help="our search compiled to C")
    for hidden in ("--child", "--model", "--file"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--k", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return
    if options.compiled:
        with tempfile.TemporaryDirectory() as name:
            sys.exit(again(Path(name)))
    print(f"Porcupine {corpus.VERDICTS['version']}, Python {sys.version.split()[0]}, ", end="")
    print("compiled search, " if wgl.__file__.endswith(".so") else "", end="")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        binary = build(folder)
        if options.only != "corpus":
            histories(binary, folder, options)
        if options.only != "histories":
            corpus_table(binary, options.rounds)


if __name__ == "__main__":
    main()
