"""Lines of logs: their time, their words and their fields, for text, logfmt, JSON lines, syslog.

    for number, line, low in lines_of(path): ...      # number from 1; line None: too long
    parse_time(line)                                   # (ns, rest) or None
    fields_of(line, rest)                              # {"lock": "a", ...}

A line is of the format that it looks like, so formats may be mixed in one file.

Traps: a time without a zone is taken for UTC, and one of syslog without a year is in 1972 (a leap
year): compared are only times of the same file, and of files that write time the same way.
"""

from __future__ import annotations

import calendar
import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.core.limits import AUDIT_LOG_LINE_BYTES_MAX

S = 1_000_000_000
_CHUNK = 1 << 20
_STAMP = re.compile(
    r"[\[(]?(?:(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](?P<part>\d{1,9}))?"
    r" ?(?P<zone>Z|[+-]\d\d:?\d\d)?"
    r"|[IWEF](?P<klog>\d{4} \d\d:\d\d:\d\d)\.(?P<micro>\d{6})"
    r"|(?:<\d{1,3}>)?(?P<bsd>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) "
    r"|<\d{1,3}>\d (?P<new>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(?P<newpart>\d{1,9}))?"
    r"(?P<newzone>Z|[+-]\d\d:\d\d) )[\])]?"
)
_MONTHS = {name: n for n, name in enumerate(calendar.month_abbr) if name}
_PAIRS = re.compile(r'([A-Za-z_][\w.\-]*)=("(?:[^"\\]|\\.)*"|[^\s,;\])}]*)')
_BSD_FROM = re.compile(r"(\S+) ([\w./\-]+)(?:\[(\d+)\])?: ?")
_NEW_FROM = re.compile(r"(\S+) (\S+) (\S+) (\S+) (?:-|\[.*?\]) ?")
_TIME_NAMES = ("time", "ts", "timestamp", "@timestamp", "t", "asctime", "datetime")
_decode = msgspec.json.Decoder().decode
_seconds: dict[str, int] = {}


def lines_of(path: Path) -> Iterator[tuple[int, str | None, str]]:
    """Lines with their numbers, also in small letters; None for one too long to be a line."""
    number, tail, dropping = 0, b"", False
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        file: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        while True:
            try:
                chunk = file.read(_CHUNK)
            except (EOFError, OSError, zlib.error):
                chunk = b""  # cut short: what stands before the cut is read
            if not chunk:
                break
            whole, newline, rest = chunk.rpartition(b"\n")
            if not newline:
                tail += chunk
                if len(tail) > AUDIT_LOG_LINE_BYTES_MAX:
                    tail, dropping = b"", True
                continue
            whole, tail = tail + whole, rest
            text = whole.decode("utf-8", "replace")
            for line, low in zip(text.split("\n"), text.lower().split("\n"), strict=True):
                number += 1
                if dropping:
                    dropping = False
                    yield number, None, ""
                else:
                    yield number, line, low
    if tail or dropping:
        last = tail.decode("utf-8", "replace")
        yield number + 1, None if dropping else last, last.lower()


def parse_time(line: str) -> tuple[int, str, str] | None:
    """(ns, the rest of the line, what kind of stamp) of a line that begins with a time."""
    found = _STAMP.match(line)
    if found is None:
        return None
    rest = line[found.end() :]
    if found["iso"]:
        return _iso(found["iso"], found["part"], found["zone"]), rest, "text"
    if found["klog"]:
        month_day, clock = found["klog"].split(" ")
        return (
            _at(f"1972-{month_day[:2]}-{month_day[2:]} {clock}") + int(found["micro"]) * 1000,
            rest,
            "klog",
        )
    if found["bsd"]:
        month = _MONTHS.get(found["bsd"][:3], 0)
        day = found["bsd"][4:6].strip().zfill(2)
        return _at(f"1972-{month:02}-{day} {found['bsd'][7:]}"), rest, "bsd"
    return _iso(found["new"], found["newpart"], found["newzone"]), rest, "new"


def _at(stamp: str) -> int:
    """Nanoseconds of ``YYYY-MM-DD HH:MM:SS``; the second before is remembered."""
    known = _seconds.get(stamp)
    if known is None:
        if len(_seconds) > 100_000:
            _seconds.clear()
        numbers = (*map(int, stamp[:10].split("-")), *map(int, stamp[11:].split(":")))
        known = _seconds[stamp] = calendar.timegm((*numbers, 0, 0, 0)) * S
    return known


def _iso(stamp: str, part: str | None, zone: str | None) -> int:
    ns = _at(stamp)
    if part:
        ns += int(part) * 10 ** (9 - len(part))
    if zone and zone != "Z":
        sign = -1 if zone[0] == "-" else 1
        ns -= sign * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60) * S
    return ns


def of_json(line: str, time_name: str = "") -> tuple[int, dict[str, Any]] | None:
    """(ns, fields) of a JSON line with a time; None if it is none."""
    try:
        fields = _decode(line)
    except msgspec.DecodeError:
        return None
    if not isinstance(fields, dict):
        return None
    names = (time_name,) if time_name else _TIME_NAMES
    ns = next((ns_of(fields[name]) for name in names if name in fields), None)
    return None if ns is None else (ns, fields)


def of_logfmt(line: str, time_name: str = "") -> tuple[int, dict[str, Any]] | None:
    """(ns, fields) of a logfmt line with a time; None if it is none."""
    fields: dict[str, Any] = pairs(line)
    names = (time_name,) if time_name else _TIME_NAMES
    ns = next((ns_of(fields[name]) for name in names if name in fields), None)
    return None if ns is None else (ns, fields)


def pairs(text: str) -> dict[str, str]:
    """All ``name=value`` in a text; quotes taken off."""
    return {
        name: value[1:-1].replace('\\"', '"') if value[:1] == '"' else value
        for name, value in _PAIRS.findall(text)
    }


def source(rest: str, stamp: str) -> tuple[str, str]:
    """(who wrote the line, the words) of the rest of a line of syslog."""
    found = (_BSD_FROM if stamp == "bsd" else _NEW_FROM).match(rest)
    if found is None:
        return "", rest
    host, program, pid = found[1], found[2], found[3]
    who = f"{host}/{program}" + (f"[{pid}]" if pid and pid != "-" else "")
    return who, rest[found.end() :]


def ns_of(value: object) -> int | None:
    """A time as ISO 8601, or seconds, ms, us or ns since 1970, by how large the number is."""
    if isinstance(value, str):
        parsed = parse_time(value)
        if parsed is not None:
            return parsed[0]
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        return None
    for bound, factor in ((1e11, S), (1e14, 1_000_000), (1e17, 1_000)):
        if value < bound:
            return round(value * factor)
    return round(value)
