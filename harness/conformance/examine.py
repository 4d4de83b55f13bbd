"""Puts all points to a worker, each with a worker in a known state before it.

    for result in examine(bench): print(result.name, result.outcome, result.why)

A point that found something wrong may leave a worker in the middle of things, so both are started
anew after it.  If they do not start, the rest is ``not asked``, and that is a failure too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple

from harness.conformance import (
    points,
    points_life,
    points_lock,
    points_shared,
    points_users,
    points_world,
)
from harness.conformance.bench import Bench, Skipped
from harness.conformance.points import POINTS, Point
from harness.conformance.talk import Wrong
from harness.core.errors import HarnessError

# Importing a file of points registers them; this is the order in which they are asked.
ROOMS = (points, points_lock, points_shared, points_users, points_world, points_life)
PARTS = [part.__name__ for part in ROOMS]
IN_ORDER = sorted(POINTS, key=lambda asked: PARTS.index(asked.ask.__module__))

LINE_CHARS_MAX = 400


class Finding(NamedTuple):
    """The result of one point; ``said``: the lines that went to and fro, oldest first."""

    name: str
    says: str
    outcome: Literal["passed", "failed", "skipped"]
    why: str
    said: list[str]


def names() -> list[str]:
    """All points, in the order in which they are asked."""
    return [asked.name for asked in IN_ORDER]


def examine(bench: Bench, only: Collection[str] = ()) -> Iterator[Finding]:
    """Asks every point (or those in ``only``, after the hello); HarnessError if the server or
    the proxy fails, not the worker."""
    fresh, dead = False, ""
    for asked in IN_ORDER:
        if only and asked.name not in only and asked.name != "hello":
            continue
        if dead:
            yield Finding(asked.name, asked.says, "failed", dead, [])
            continue
        bench.said.clear()
        found = _ask(bench, asked, fresh)
        fresh = found.outcome == "failed" and asked.name != "hello"
        if asked.name == "hello" and found.outcome == "failed":
            dead = "not asked: it does not start as it should"
        yield found


def _ask(bench: Bench, asked: Point, fresh: bool) -> Finding:
    outcome: Literal["passed", "failed", "skipped"] = "passed"
    why = ""
    try:
        if asked.ready or fresh:
            bench.ready(fresh=fresh, opened=asked.ready)
        asked.ask(bench)
    except Skipped as reason:
        outcome, why = "skipped", str(reason)
    except Wrong as error:
        outcome, why = "failed", str(error)
    except HarnessError as error:
        raise HarnessError(f"point {asked.name}: {error}") from error
    said = [
        line if len(line) <= LINE_CHARS_MAX else line[: LINE_CHARS_MAX - 3] + "..."
        for line in bench.said
    ]
    return Finding(asked.name, asked.says, outcome, why, said)
