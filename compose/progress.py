"""Progress of what takes long: ``say("building toxiproxy-server (about a minute)")``."""

from __future__ import annotations

import sys


def say(line: str) -> None:
    """A line on stderr: stdout may be a report for a machine."""
    print(f"lockhavoc: {line}", file=sys.stderr, flush=True)  # noqa: T201 - progress of a command
