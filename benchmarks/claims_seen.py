"""Puts every library through every situation of ``verify`` and prints a table.

    python benchmarks/claims_seen.py                                # hours
    python benchmarks/claims_seen.py redis-py kazoo --jobs 3 --runtime process
    python benchmarks/claims_seen.py --known                        # only prints

One ``lockhavoc verify LIBRARY --backend BACKEND --seed S --json`` each, in a process of its own, on
the first backend of the library (--every-backend: on all).  What came out is kept in
``store/claims.jsonl``, a line per library and backend; what is there and whole is not run again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.registries import BACKENDS, LIBRARIES
from harness.verify import survey

ROOT = Path(__file__).resolve().parent.parent
KNOWN = ROOT / "store" / "claims.jsonl"
GOOD = ("as-claimed", "better")


def verified(library: str, backend: str, options: argparse.Namespace) -> dict[str, Any]:
    """What ``verify`` says of one library on one backend, and its exit code."""
    argv = [sys.executable, "-m", "harness.cli", "verify", library, "--backend", backend]
    argv += ["--seed", str(options.seed), "--jobs", str(options.jobs), "--json", "--quiet"]
    argv += ["--runtime", options.runtime, "--store", str(ROOT / "store")]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    row: dict[str, Any] = {"library": library, "backend": backend, "exit_code": done.returncode}
    try:
        return row | {"document": json.loads(done.stdout)}
    except ValueError:
        return row | {"error": done.stderr.strip().splitlines()[-1:]}


def known() -> list[dict[str, Any]]:
    """The rows of verifications that came to their end, in the order they were run."""
    if not KNOWN.exists():
        return []
    rows = [json.loads(line) for line in KNOWN.read_text().splitlines()]
    return [row for row in rows if row.get("document") and not row["document"]["interrupted"]]


def asked(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """(library, backend) in the order of the registry."""
    for library in options.libraries or survey.surveyed_libraries():
        if options.every_backend:
            backends = LIBRARIES.load(library).backends
            yield from ((library, backend) for backend in backends if backend in BACKENDS)
        else:
            yield library, survey.first_backend(library)


def tables(rows: list[dict[str, Any]]) -> str:
    """Markdown: a row per library and backend, then every cell that is not as claimed."""
    latest = {(row["library"], row["backend"]): row["document"] for row in rows}
    total: Counter[str] = Counter()
    lines, other = [], []
    for (library, backend), document in sorted(latest.items()):
        cells = document["cells"]
        count = Counter(cell["verdict"] for cell in cells)
        total += count
        figures = (len(cells), count["as-claimed"], count["better"], count["worse"])
        rest = len(cells) - sum(figures[1:])
        numbers = " | ".join(str(number) for number in (*figures, rest))
        lines.append(f"| `{library}` | `{backend}` | {numbers} | {document['seed']} |\n")
        other += [
            f"| `{library}` | `{backend}` | {cell['situation']} | {cell['verdict']} "
            f"| {cell['says'].replace('|', '/')[:240]} |\n"
            for cell in cells
            if cell["verdict"] not in GOOD
        ]
    said = ", ".join(f"{number} {verdict}" for verdict, number in total.most_common())
    text = f"{len(latest)} rows, {total.total()} cells: {said}.\n\n"
    text += "| library | backend | cells | as claimed | better | worse | unknown | seed |\n"
    text += "|---|---|---|---|---|---|---|---|\n" + "".join(lines)
    text += "\n| library | backend | situation | verdict | seen |\n|---|---|---|---|---|\n"
    return text + "".join(other)


def main() -> None:
    """Runs what is missing, then prints all that is known."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("libraries", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time")
    parser.add_argument("--runtime", default="auto")
    parser.add_argument("--every-backend", action="store_true")
    parser.add_argument("--known", action="store_true", help="runs nothing")
    options = parser.parse_args()
    have = {(row["library"], row["backend"]) for row in known()}
    KNOWN.parent.mkdir(exist_ok=True)
    for library, backend in [] if options.known else asked(options):
        if (library, backend) in have:
            continue
        have.add((library, backend))
        row = verified(library, backend, options)
        with KNOWN.open("a") as file:
            file.write(json.dumps(row) + "\n")
        verdicts = Counter(cell["verdict"] for cell in row.get("document", {}).get("cells", ()))
        print(f"{library} on {backend}: {dict(verdicts)} {row.get('error', '')}", file=sys.stderr)
    print(tables(known()))


if __name__ == "__main__":
    main()
