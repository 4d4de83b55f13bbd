"""How fast the audit reads: mixed code is made up from a seed, written to a folder and judged.

    python -m benchmarks.audit_speed --lines 100000

One file in ten is about a lock (from the samples of the tests), the others are the services and
tables that stand around it in a repository.  Prints one JSON line with the processor time of
reading and judging, lines a second, and findings, which must be the same for the same seed.

Traps: the time is processor time of one process, so a busy machine does not change it much; the
start of the interpreter and the loading of grammars are in it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import tempfile
import time
from pathlib import Path

from checkers.audit import audit

SAMPLES = Path(__file__).resolve().parents[1] / "tests" / "data" / "audit"
DAY = datetime.date(2026, 11, 30)
PLAIN = {
    ".py": "def step_{n}(items, limit={k}):\n    found = [i for i in items if i.size > limit]\n"
    "    for one in found:\n        one.weight = one.size * {k} + limit\n    return found\n\n\n",
    ".ts": "export async function step{n}(items: Item[], limit = {k}): Promise<Item[]> {{\n"
    "  const found = items.filter((i) => i.size > limit);\n  for (const one of found) {{\n"
    "    one.weight = one.size * {k} + limit;\n    await save(one);\n  }}\n  return found;\n}}\n\n",
    ".go": "func Step{n}(items []Item, limit int) ([]Item, error) {{\n\tfound := items[:0]\n"
    "\tfor _, one := range items {{\n\t\tif one.Size > limit+{k} {{\n"
    "\t\t\tfound = append(found, one)\n\t\t}}\n\t}}\n\treturn found, nil\n}}\n\n",
    ".java": "    List<Item> step{n}(List<Item> items, int limit) {{\n"
    "        List<Item> found = new ArrayList<>();\n        for (Item one : items) {{\n"
    "            if (one.size() > limit + {k}) {{\n                found.add(one);\n"
    "            }}\n        }}\n        return found;\n    }}\n\n",
    ".rb": "def step_{n}(items, limit = {k})\n  found = items.select {{ |i| i.size > limit }}\n"
    "  found.each do |one|\n    one.weight = one.size * {k} + limit\n  end\n  found\nend\n\n",
    ".sql": "CREATE TABLE item_{n} (\n  id bigint PRIMARY KEY,\n  size int NOT NULL DEFAULT {k},\n"
    "  weight int\n);\nINSERT INTO item_{n} (id, size) VALUES ({n}, {k});\n\n",
}
AROUND = {".java": ("class Step{n} {{\n", "}}\n"), ".go": ("package step\n\n", "")}


def write(folder: Path, lines: int, seed: int) -> tuple[int, int]:
    """Files of that many lines in all: (lines, files)."""
    rng = random.Random(seed)
    locks = sorted(
        p for p in SAMPLES.glob("*.*.*") if p.suffix in PLAIN and "look-alike" not in p.name
    )
    written = files = 0
    while written < lines:
        files += 1
        if files % 10 == 0:
            sample = locks[rng.randrange(len(locks))]
            text, suffix = sample.read_text(), sample.suffix
        else:
            suffix = rng.choice(sorted(PLAIN))
            body = "".join(
                PLAIN[suffix].format(n=rng.randrange(10**6), k=rng.randrange(100))
                for _ in range(rng.randrange(5, 60))
            )
            before, after = AROUND.get(suffix, ("", ""))
            text = before.format(n=files) + body + after.format()
        (folder / f"d{files % 40}").mkdir(exist_ok=True)
        (folder / f"d{files % 40}" / f"f{files}{suffix}").write_text(text)
        written += text.count("\n")
    return written, files


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines, files = write(folder, options.lines, options.seed)
        began = time.process_time()
        record = audit([folder], as_of=DAY)
        took_s = time.process_time() - began
    print(
        json.dumps(
            {
                "lines": lines,
                "files": files,
                "cpu_s": round(took_s, 2),
                "lines_per_s": round(lines / took_s),
                "findings": len(record.findings),
                "unread": len(record.unread),
            }
        )
    )


if __name__ == "__main__":
    main()
