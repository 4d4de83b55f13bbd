"""From log files to facts, in one pass over all of them, merged by time.

    report = log_facts([Path("a.log"), Path("b.log")], Mapping())
    report.facts, report.unread, report.digests

Traps: files are merged by the times in them, each read once and in its own order; the digest is
made in a second reading.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from checkers.audit.live.histories import digest_of
from checkers.audit.logs.lines import lines_of
from checkers.audit.logs.mapping import Mapping
from checkers.audit.logs.trace import Trace
from checkers.audit.logs.words import Event, Reader
from checkers.audit.model import Fact, Place, Unread

_NAMES = re.compile(
    r"\.(log|jsonl|ndjson|logfmt)(\.\d+)?(\.gz)?$|^(syslog|messages|journal)(\.\d+|\.txt)?(\.gz)?$",
    re.I,
)


@dataclass
class Report:
    """What the logs say; ``unread`` counts lines that are none of a log."""

    facts: list[Fact] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)


def is_log(path: Path) -> bool:
    """Whether a file is a log by its name."""
    return _NAMES.search(path.name) is not None


def log_facts(paths: Sequence[Path], mapping: Mapping) -> Report:
    """Facts of all logs together; UserError never, an unreadable file is listed."""
    report, reader, trace = Report(), Reader(mapping), Trace(mapping)
    readable: list[Path] = []
    for path in paths:
        try:
            report.digests[path.as_posix()] = digest_of(path)
            readable.append(path)
        except OSError as error:
            report.unread.append(Unread(path.as_posix(), f"cannot be read: {error}"))
    streams = [_events(reader, path) for path in readable]
    merged = streams[0] if len(streams) == 1 else heapq.merge(*streams, key=lambda e: e.ns)
    for event in merged:
        trace.see(event)
    trace.end()
    for hit in trace.hits:
        event = hit.event
        values = {"what": hit.what, "says": hit.says, "lock": event.lock}
        report.facts.append(Fact("log", Place(event.path, event.line, event.line), values))
    for what, count in sorted(trace.more.items()):
        last = max(at for at, f in enumerate(report.facts) if f.get("what") == what)
        fact = report.facts[last]
        says = f"{fact.get('says')} (and {count} more of this rule)"
        report.facts[last] = Fact("log", fact.place, {**fact.values, "says": says})
    for name, count in sorted(trace.events.items()):
        report.facts.append(Fact("log-read", Place(name, 1, 1), {"events": count}))
    for name, (count, first) in sorted(reader.unparsed.items()):
        words = f"{count} lines are none of a log that we know (the first is line {first})"
        report.unread.append(Unread(name, words))
    return report


def _events(reader: Reader, path: Path) -> Iterator[Event]:
    name = path.as_posix()
    event = reader.event
    for number, line, low in lines_of(path):
        found = event(name, number, line, low)
        if found is not None:
            yield found
