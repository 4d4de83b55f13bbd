"""How fast the audit reads logs: a million lines, a tenth of them about locks.

    python -m benchmarks.audit_logs [LINES] [SHARE]

Prints seconds and lines per second for text, logfmt, JSON lines and syslog, each on one core.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from checkers.audit.logs import Mapping, log_facts

EVENTS = ("acquired", "renewed", "released")
Line = Callable[[str, str, str, str], str]
FORMATS: dict[str, tuple[Line, Line]] = {
    "text": (
        lambda t, e, k, h: f"2026-11-30 {t} INFO [{h}] lock '{k}' {e} by {h} ttl=30s",
        lambda t, e, k, h: f"2026-11-30 {t} INFO [{h}] GET /orders/{k} 200 in 12 ms, 4312 bytes",
    ),
    "logfmt": (
        lambda t, e, k, h: f'ts=2026-11-30T{t}Z level=info msg="lock {e}" lock={k} holder={h}',
        lambda t, e, k, h: f'ts=2026-11-30T{t}Z level=info msg="request served" path=/orders/{k}',
    ),
    "json": (
        lambda t, e, k, h: (
            f'{{"ts":"2026-11-30T{t}Z","event":"lock_{e}","lock":"{k}","holder":"{h}"}}'
        ),
        lambda t, e, k, h: f'{{"ts":"2026-11-30T{t}Z","msg":"request served","path":"/o/{k}"}}',
    ),
    "syslog": (
        lambda t, e, k, h: f"Nov 30 {t[:8]} {h} billing[12]: lock '{k}' {e}",
        lambda t, e, k, h: f"Nov 30 {t[:8]} {h} sshd[99]: session opened for user {k}",
    ),
}


def write(path: Path, lines: int, share: float, form: str) -> None:
    """A log of that many lines; deterministic."""
    rng = random.Random(7)
    about, other = FORMATS[form]
    turn = {f"orders:{n}": 0 for n in range(200)}
    keys = list(turn)
    with path.open("w") as file:
        for number in range(lines):
            ms = number * 80
            clock = (ms // 3_600_000 % 24, ms // 60_000 % 60, ms // 1000 % 60, ms % 1000)
            stamp = "{:02}:{:02}:{:02}.{:03}".format(*clock)
            key = rng.choice(keys)
            if rng.random() < share:
                step = turn[key]
                turn[key] = step + 1
                holder = f"worker-{step // 3 % 9}"
                file.write(about(stamp, EVENTS[step % 3], key, holder) + "\n")
            else:
                file.write(other(stamp, "", key, "host-1") + "\n")


def main() -> None:
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    share = float(sys.argv[2]) if len(sys.argv) > 2 else 0.1
    with tempfile.TemporaryDirectory() as folder:
        for form in FORMATS:
            path = Path(folder) / f"{form}.log"
            write(path, lines, share, form)
            start, cpu = time.perf_counter(), time.process_time()
            report = log_facts([path], Mapping())
            took, used = time.perf_counter() - start, time.process_time() - cpu
            events = sum(int(f.get("events")) for f in report.facts if f.kind == "log-read")
            print(
                f"{form:<8} {lines:,} lines, {events:,} events: {took:.1f} s (CPU {used:.1f} s), "
                f"{lines / used:,.0f} lines per CPU second, {len(report.unread)} files with "
                "lines that were not understood"
            )


if __name__ == "__main__":
    main()
