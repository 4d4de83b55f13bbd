"""What the records of many requests say: starvation, fairness, herds, deadlock suspects.

    seen = monitor(read_records("retry.jsonl"))
    print(as_text(seen))

Waits are those of requests that ended.  *Passed by*: others asked later for the same lock and got
it earlier.  Jain's index of the waits of those that acquired is 1 where all wait alike and 1/n
where one waits for all (Jain, Chiu, Hawe 1984).  A *herd* is several clients trying the same lock
within 10 ms after their sleeps.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from harness.core.clock import NS_PER_MS

HERD_WINDOW_NS = 10 * NS_PER_MS
STARVED_PASSED_BY = 3  # others that overtook it, and
STARVED_TIMES_MEDIAN = 3  # a wait of so many medians
SUSPECT_ESCALATIONS = 3


def monitor(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Figures per lock; JSON-able.  Times in ms."""
    outcomes: dict[str, list[dict[str, Any]]] = defaultdict(list)
    attempts: dict[str, list[tuple[int, str]]] = defaultdict(list)
    letters: Counter[str] = Counter()
    for record in records:
        if record["kind"] == "outcome":
            outcomes[record["lock"]].append(record)
        elif record["kind"] == "decision":
            attempts[record["lock"]].append((record["at_ns"], record["requester"]))
        elif record["kind"] == "dead-letter":
            letters[record["request"]["lock_name"]] += 1
    names = sorted({*outcomes, *attempts, *letters})
    return {
        "schema": "lockhavoc.retry-monitor/1",
        "locks": [_lock(name, outcomes[name], attempts[name], letters[name]) for name in names],
    }


def _lock(
    name: str, ends: list[dict[str, Any]], tries: list[tuple[int, str]], letters: int
) -> dict[str, Any]:
    ends = sorted(ends, key=lambda r: int(r["at_ns"]))
    granted = [r for r in ends if r["outcome"] == "acquired"]
    waits = sorted((r["at_ns"] - r["began_ns"]) / NS_PER_MS for r in granted)
    median = quantile(waits, 0.5)
    counts = Counter(r["outcome"] for r in ends)
    starved = [
        {"requester": r["requester"], "outcome": r["outcome"], "waited_ms": wait, "passed_by": n}
        for r, n in zip(ends, _passed_by(ends), strict=True)
        if n >= STARVED_PASSED_BY
        and (wait := (r["at_ns"] - r["began_ns"]) / NS_PER_MS) > STARVED_TIMES_MEDIAN * median
    ]
    escalated = counts["escalated"]
    return {
        "lock": name,
        "outcomes": {
            word: counts[word] for word in ("acquired", "escalated", "abandoned", "cancelled")
        },
        "attempts_per_grant": sum(r["attempts"] for r in ends) / len(granted) if granted else None,
        "wait_ms": {"p50": median, "p99": quantile(waits, 0.99), "max": max(waits, default=0.0)},
        "jain": jain(waits),
        "longest_over_median": waits[-1] / median if waits and median else None,
        "starved": starved,
        "largest_herd": _largest_herd(tries),
        "deadlock_review": escalated >= SUSPECT_ESCALATIONS,
        "dead_letters": letters,
    }


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value of which ``share`` of all are no greater (nearest rank); 0.0 of none."""
    if not ordered:
        return 0.0
    return ordered[max(0, -int(-len(ordered) * share // 1) - 1)]


def jain(values: Sequence[float]) -> float | None:
    """Jain's fairness index; None of nothing, 1.0 where nobody waited."""
    if not values:
        return None
    squares = sum(v * v for v in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def _passed_by(ends: list[dict[str, Any]]) -> list[int]:
    """For each request, ordered by end: later askers that had the lock before it ended."""
    begun: list[int] = []  # starts of those that acquired so far
    found = []
    for record in ends:
        found.append(len(begun) - bisect_left(begun, record["began_ns"] + 1))
        if record["outcome"] == "acquired":
            insort(begun, record["began_ns"])
    return found


def _largest_herd(tries: list[tuple[int, str]]) -> int:
    tries = sorted(tries)
    inside: Counter[str] = Counter()
    largest = first = 0
    for at_ns, requester in tries:
        inside[requester] += 1
        while tries[first][0] < at_ns - HERD_WINDOW_NS:
            inside[tries[first][1]] -= 1
            if not inside[tries[first][1]]:
                del inside[tries[first][1]]
            first += 1
        largest = max(largest, len(inside))
    return largest


def as_text(seen: dict[str, Any]) -> str:
    """A few lines per lock."""
    lines = []
    for lock in seen["locks"]:
        wait, jains = lock["wait_ms"], lock["jain"]
        ends = ", ".join(f"{n} {word}" for word, n in lock["outcomes"].items() if n)
        lines.append(f"{lock['lock']}: {ends or 'nothing ended'}")
        lines.append(
            f"  wait p50 {wait['p50']:.0f} ms, p99 {wait['p99']:.0f} ms, max {wait['max']:.0f} ms"
            + (f"; Jain {jains:.2f}" if jains is not None else "")
        )
        if lock["attempts_per_grant"] is not None:
            lines.append(
                f"  {lock['attempts_per_grant']:.1f} attempts a grant,"
                f" largest herd {lock['largest_herd']}"
            )
        for one in lock["starved"][:5]:
            lines.append(
                f"  starved: {one['requester']} waited {one['waited_ms']:.0f} ms,"
                f" passed by {one['passed_by']} others ({one['outcome']})"
            )
        if lock["deadlock_review"]:
            lines.append("  escalated again and again: look for a deadlock")
        if lock["dead_letters"]:
            letters = "dead letter" if lock["dead_letters"] == 1 else "dead letters"
            lines.append(f"  {lock['dead_letters']} {letters}; see: lockhavoc retry requeue")
    return "\n".join(lines) or "no records"


def as_prometheus(seen: dict[str, Any]) -> str:
    """The text format that Prometheus scrapes (a node exporter's textfile, for instance)."""
    rows: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for lock in seen["locks"]:
        label = 'lock="' + _escaped(lock["lock"]) + '"'
        for word, count in lock["outcomes"].items():
            rows["requests_total"].append((f'{label},outcome="{word}"', count))
        for share, value in (("0.5", "p50"), ("0.99", "p99"), ("1", "max")):
            seconds = lock["wait_ms"][value] / 1000
            rows["wait_seconds"].append((f'{label},quantile="{share}"', seconds))
        for name in ("jain", "attempts_per_grant", "largest_herd", "dead_letters"):
            if lock[name] is not None:
                rows[name].append((label, lock[name]))
        rows["starved"].append((label, len(lock["starved"])))
        rows["deadlock_review"].append((label, int(lock["deadlock_review"])))
    lines = []
    for name, values in rows.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines.append(f"# TYPE lockhavoc_retry_{name} {kind}")
        lines += [f"lockhavoc_retry_{name}{{{label}}} {value:.12g}" for label, value in values]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
