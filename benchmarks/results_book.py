"""Runs scenarios of the book several times and prints the tables of docs/results-book.md.

    python benchmarks/results_book.py                      # ten seeds each: takes hours alone
    python benchmarks/results_book.py scenarios/etcd/*.toml --repeat 10 --jobs 3
    python benchmarks/results_book.py --known              # only prints, what was run so far

Each batch is one ``lockhavoc run SCENARIO --seed S --repeat N --json`` in a process of its own, so
that the table says what a user would have seen.  What was run is kept in ``store/book.jsonl``; a
batch that is there already (same text of the scenario, same seeds, same runtime) is not run again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness.scenario import load

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "store" / "book.jsonl"
FIRST_SEED = 1000


def batch(path: Path, *, seed: int, repeat: int, runtime: str) -> dict[str, Any]:
    """Runs one scenario ``repeat`` times; {"scenario", "digest", "runs": [...]}."""
    argv = [sys.executable, "-m", "harness.cli", "run", str(path), "--seed", str(seed)]
    argv += ["--repeat", str(repeat), "--runtime", runtime, "--json", "--quiet"]
    argv += ["--store", str(ROOT / "store")]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    row: dict[str, Any] = {
        "scenario": str(path.resolve().relative_to(ROOT)),
        "digest": digest(path),
        "seed": seed,
        "repeat": repeat,
        "runtime": runtime,
        "exit_code": done.returncode,
    }
    try:
        reports = json.loads(done.stdout)["runs"]
    except (ValueError, KeyError):
        return row | {"runs": [], "error": done.stderr.strip().splitlines()[-1:]}
    runs = [
        {key: report[key] for key in ("seed", "exit_code", "verdict", "says", "runtime")}
        for report in reports
    ]
    return row | {"runs": runs}


def digest(path: Path) -> str:
    """Of the text of a scenario, so that a changed one is run again."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def known() -> list[dict[str, Any]]:
    """What was run so far, of scenarios that are still as they were."""
    if not BOOK.exists():
        return []
    rows = [json.loads(line) for line in BOOK.read_text().splitlines()]
    return [row for row in rows if _is_current(row)]


def _is_current(row: dict[str, Any]) -> bool:
    path = ROOT / row["scenario"]
    return path.exists() and digest(path) == row["digest"] and bool(row["runs"])


def tables(rows: list[dict[str, Any]]) -> str:
    """Markdown: a table for each folder of scenarios."""
    runs: dict[str, dict[tuple[str, int], dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        for run in row["runs"]:
            runs[row["scenario"]][run["runtime"], run["seed"]] = run  # the last one counts
    folders: dict[str, list[str]] = defaultdict(list)
    good = total = 0
    for name in sorted(runs):
        one = list(runs[name].values())
        hits = sum(run["exit_code"] == 0 for run in one)
        good, total = good + hits, total + len(one)
        folders[Path(name).parent.name].append(_line(name, one, hits))
    text = f"{good} of {total} runs ended as claimed.\n"
    for folder, lines in folders.items():
        text += (
            f"\n## {folder}\n\n| scenario | claim | runtime | seeds | as claimed | otherwise |\n"
        )
        text += "|---|---|---|---|---|---|\n" + "".join(f"{line}\n" for line in lines)
    return text


def _line(name: str, runs: list[dict[str, Any]], hits: int) -> str:
    claim = load(ROOT / name).claim
    seeds = sorted(run["seed"] for run in runs)
    other = sorted({f"{run['verdict']}: {run['says']}" for run in runs if run["exit_code"]})
    cells = [
        f"`{Path(name).parent.name}/{Path(name).stem}`",
        claim.verdict + (f" by {', '.join(claim.by)}" if claim.by else ""),
        ", ".join(sorted({run["runtime"] for run in runs})),
        f"{seeds[0]}-{seeds[-1]}" if len(seeds) > 1 else str(seeds[0]),
        f"{hits}/{len(runs)}",
        "; ".join(other)[:200].replace("|", "\\|"),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Runs what is missing, then prints all that is known."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("scenarios", nargs="*", type=Path)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--seed", type=int, default=FIRST_SEED)
    parser.add_argument("--jobs", type=int, default=1, help="batches at a time")
    parser.add_argument("--runtime", default="auto")
    parser.add_argument("--known", action="store_true", help="runs nothing")
    args = parser.parse_args()
    everything = sorted((ROOT / "scenarios").glob("*/*.toml"))
    wanted = [path.resolve() for path in args.scenarios] or everything
    rows = known()
    have = {
        (row["scenario"], row["seed"], row["runtime"]) for row in rows
        if row["repeat"] >= args.repeat
    }  # fmt: skip
    left = [
        path for path in wanted
        if (str(path.relative_to(ROOT)), args.seed, args.runtime) not in have
    ]  # fmt: skip
    BOOK.parent.mkdir(exist_ok=True)
    if not args.known:
        with ThreadPoolExecutor(args.jobs) as pool, BOOK.open("a") as book:
            work = pool.map(
                lambda path: batch(path, seed=args.seed, repeat=args.repeat, runtime=args.runtime),
                left,
            )
            for row in work:
                book.write(json.dumps(row) + "\n")
                book.flush()
                hits = sum(run["exit_code"] == 0 for run in row["runs"])
                print(f"{row['scenario']}: {hits}/{len(row['runs'])}", file=sys.stderr)
                for line in row.get("error", ()):
                    print(f"  {line}", file=sys.stderr)
    print(tables(known()))


if __name__ == "__main__":
    main()
