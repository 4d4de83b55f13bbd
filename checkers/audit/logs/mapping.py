"""What a user says about the words of their own log, as a TOML file.

    [fields]                     # names of fields, where they are called differently
    lock = "resource"
    holder = "pod"
    [events]                     # regular expressions, looked for before our own words
    acquired = "got the baton"
    lost = "baton (dropped|gone)"
    [lease]
    ttl_ms = 30000               # where lines do not tell the lease
    [clock]
    skew_ms = 500                # how far clocks of different files may be apart

    mapping = read_mapping(Path("log-map.toml"))

Traps: an expression that is no regular expression, or a name that we do not know, is refused; it
would else match nothing and make a log look quiet.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from harness.core.errors import UserError

FIELDS = ("time", "lock", "holder", "ttl_ms", "message")
EVENTS = ("acquired", "released", "renewed", "lost", "refused", "work")
SKEW_MS = 1_000  # of hosts that keep time by NTP, with room


@dataclass(frozen=True)
class Mapping:
    """fields: our name -> names in the log.  events: (kind, expression).  Times in ns."""

    fields: dict[str, str] = field(default_factory=dict)
    events: tuple[tuple[str, re.Pattern[str]], ...] = ()
    ttl_ns: int | None = None
    skew_ns: int = SKEW_MS * 1_000_000


def read_mapping(path: Path) -> Mapping:
    """The mapping in a file; UserError lists everything that is wrong with it."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: cannot be read as TOML: {error}") from error
    problems: list[str] = []
    known = {"fields": FIELDS, "events": EVENTS, "lease": ("ttl_ms",), "clock": ("skew_ms",)}
    for table, values in data.items():
        if table not in known or not isinstance(values, dict):
            problems.append(f"{table}: unknown; the tables are {', '.join(known)}")
            continue
        problems += [
            f"{table}.{name}: unknown; use {', '.join(known[table])}"
            for name in values
            if name not in known[table]
        ]
    events = []
    for kind, expression in data.get("events", {}).items():
        try:
            events.append((kind, re.compile(str(expression), re.I)))
        except re.error as error:
            problems.append(f"events.{kind}: {expression!r} is no regular expression: {error}")
    numbers = {}
    for table, name in (("lease", "ttl_ms"), ("clock", "skew_ms")):
        value = data.get(table, {}).get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            problems.append(f"{table}.{name}: {value!r} is no number of milliseconds")
        elif value is not None and value < 0:
            problems.append(f"{table}.{name}: {value} is negative")
        elif value is not None:
            numbers[name] = round(value * 1_000_000)
    if problems:
        raise UserError(f"{path}: is no mapping of a log", problems)
    fields = {name: str(value) for name, value in data.get("fields", {}).items()}
    skew_ns = numbers.get("skew_ms", SKEW_MS * 1_000_000)
    return Mapping(fields, tuple(events), numbers.get("ttl_ms"), skew_ns)
