"""All lock monitors in one pass over a file of any length, in memory that its length does not set.

    verdicts = check_stream("history.jsonl")          # {"mutex": Verdict, "fenced": ..., ...}
    verdicts["lease"].valid, verdicts["lease"].says

This reads the lines (``Lines``) and feeds them to the online monitors (``checkers.online``): mutex,
fenced mutex, lease, belief, fenced resource, and figures of fairness.  Where the online form cannot
decide (an operation of a hold that it had to forget, equal times of one process, a grant of unknown
outcome that was renewed ...) the *key* is put aside, and if the source is a file, it is read once
more for those keys only and the batch monitors decide: this needs memory for all of such a key.

Memory is a constant per key, per process that asks for something at the moment, and for up to
HOLDS_UNSURE_MAX holds of unknown end (see ``checkers.online``).

Traps.  Lines must be in time order, as the harness writes them; a malformed line is a UserError
with its number, and nothing is judged.  A torn last line is dropped; ``torn`` in the stats says so.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from checkers.models.base import LOCK_F
from checkers.monitors import belief, lease, mutex, resource
from checkers.monitors.span import Verdict
from checkers.online import Online
from checkers.online_keys import Line, OddLine
from harness.core.errors import UserError
from harness.core.history import SCHEMA, Header, Op, pair
from harness.core.result import Valid

CHUNK_BYTES = 1 << 14  # some 125 lines with all their objects fit a core's cache: twice as fast


class Lines:
    """Batches of events of a JSON-lines file or of an iterable of lines.

    header, torn: known when the iteration has ended (the header after the first batch).
    """

    def __init__(self, source: str | Path | Iterable[bytes | str], kind: Any = Line) -> None:
        self.source, self.kind = source, kind  # kind: what each line becomes
        self.header = Header()
        self.torn = False
        self.path = Path(source) if isinstance(source, str | Path) else None
        self._place = self._before = 0  # of this chunk: its number, and the lines before it

    def __iter__(self) -> Iterator[list[Any]]:
        decode = msgspec.json.Decoder(self.kind).decode_lines
        for chunk in self._chunks():
            if not self._place:
                self._before, chunk = self._header(chunk)
            try:
                yield decode(chunk)
            except msgspec.DecodeError:
                yield self._slowly(chunk)
            self._place += 1
            if self.path is None:
                self._before += chunk.count(b"\n")

    def _chunks(self) -> Iterator[bytes]:
        """Whole lines, some thousands at a time; the last may lack its newline."""
        if self.path is None:
            batch: list[bytes] = []
            assert not isinstance(self.source, str | Path)
            for line in self.source:
                text = line.encode() if isinstance(line, str) else line
                batch.append(text if text.endswith(b"\n") else text + b"\n")
                if len(batch) >= 4096:
                    yield b"".join(batch)
                    batch = []
            yield b"".join(batch)
            return
        opener = gzip.open if self.path.suffix == ".gz" else open
        rest = b""
        with opener(self.path, "rb") as file:
            while block := file.read(CHUNK_BYTES):
                cut = block.rfind(b"\n") + 1
                if not cut:
                    rest += block
                    continue
                yield rest + block[:cut]
                rest = block[cut:]
        if rest:
            yield rest

    def _header(self, chunk: bytes) -> tuple[int, bytes]:
        """Takes the header line off the first chunk, if there is one."""
        end = chunk.find(b"\n") + 1
        line = chunk[:end] if end else chunk
        if b'"schema"' not in line or b'"type"' in line:
            return 0, chunk
        try:
            self.header = msgspec.json.decode(line, type=Header)
        except msgspec.DecodeError as error:
            raise UserError(f"{self._name()}line 1: bad header: {error}") from error
        if self.header.schema != SCHEMA:
            raise UserError(
                f"{self._name()}line 1: schema is {self.header.schema!r}, this version reads "
                f"{SCHEMA!r}; use the release that wrote the file"
            )
        return 1, chunk[len(line) :]

    def _slowly(self, chunk: bytes) -> list[Any]:
        """Line by line, to name the malformed one; a torn last line is dropped."""
        lean = self.kind is Line
        decode: Any = msgspec.json.Decoder(OddLine if lean else self.kind).decode
        found = []
        for place, line in enumerate(chunk.splitlines(keepends=True), 1):
            if line.isspace():
                continue
            try:
                event = decode(line)
                found.append(event.line() if lean else event)
            except msgspec.DecodeError as error:
                if not line.endswith(b"\n"):
                    self.torn = True
                    break
                raise UserError(
                    f"{self._name()}line {self._lines_before() + place}: {error}; every line must "
                    "be one event"
                ) from error
        return found

    def _lines_before(self) -> int:
        """Lines before this chunk: of a file they are only counted when one is malformed."""
        if self.path is None or not self._place:
            return self._before
        return sum(chunk.count(b"\n") for chunk in islice(self._chunks(), self._place))

    def _name(self) -> str:
        return "" if self.path is None else f"{str(self.path)!r}, "


def check_stream(
    source: str | Path | Iterable[bytes | str],
    *,
    ttl_ns: int | None = None,
    drift_ppm: int = 0,
    enforced: bool = True,
) -> dict[str, Verdict]:
    """Verdicts of mutex, fenced, lease, belief, store and fairness, in one pass.

    source: a JSON-lines file (may be .gz) or its lines.  ttl_ns: length of leases, by default the
    header's.  enforced: clients stop believing at their own deadline.
    """
    lines = Lines(source)
    batches = iter(lines)
    head = next(batches, [])
    known_ttl_ns = lines.header.ttl_ns if ttl_ns is None else ttl_ns
    online = Online(ttl_ns=known_ttl_ns, drift_ppm=drift_ppm, enforced=enforced)
    online.feed(head)
    head.clear()
    for batch in batches:
        online.feed(batch)
        batch.clear()  # so that the next one is made in the same memory, which the core has at hand
    verdicts = online.finish()
    for verdict in verdicts.values():
        verdict.stats["torn"] = lines.torn
    if online.aside and lines.path is not None:
        _again(lines.path, online, verdicts, known_ttl_ns, drift_ppm, enforced)
    for verdict in verdicts.values():
        if verdict.valid is Valid.TRUE and not verdict.exact:
            verdict.valid = Valid.UNKNOWN
    return verdicts


def _again(
    path: Path,
    online: Online,
    verdicts: dict[str, Verdict],
    ttl_ns: int | None,
    drift_ppm: int,
    enforced: bool,
) -> None:
    """Batch monitors for the keys that the online forms put aside."""
    events = list(read_keys(path, frozenset(online.aside)))
    lost = [event for event in events if event.f == belief.LOST]
    intervals = pair(event for event in events if event.f != belief.LOST)
    locks = [op for op in intervals if op.invoke.f in LOCK_F]
    tokens = bool(verdicts["fenced"].stats.get("tokens"))
    batch = {
        "mutex": mutex.check(locks),
        "fenced": mutex.check_fenced(locks) if tokens else None,
        "lease": lease.check(locks, ttl_ns=ttl_ns, drift_ppm=drift_ppm, fenced=tokens),
        "belief": belief.check(
            locks, ttl_ns=ttl_ns, enforced=enforced, lost=lost, end_ns=online.now
        ),
        "store": resource.check(intervals),
    }
    for name, found in batch.items():
        if found is None:
            continue
        verdict = verdicts[name]
        verdict.exact, verdict.why, verdict.unsure = found.exact, found.why, found.unsure
        for anomaly in found.anomalies:
            verdict.add(anomaly)
        verdict.count += found.count - len(found.anomalies)
        verdict.suspects.extend(found.suspects)
        verdict.stats["read_again"] = len(online.aside)


def read_keys(path: Path, keys: frozenset[str | None]) -> Iterator[Op]:
    """The events of some keys only, in full."""
    decode = msgspec.json.Decoder(Op).decode
    wanted = {b'"key":' + msgspec.json.encode(key) if key is not None else b"" for key in keys}
    plain = None not in keys
    for chunk in Lines(path)._chunks():
        for line in chunk.splitlines():
            if plain and b'"key":"' in line and not any(key in line for key in wanted):
                continue
            if line.isspace() or (b'"schema"' in line and b'"type"' not in line):
                continue
            try:
                op = decode(line)
            except msgspec.DecodeError:
                continue  # the torn last line; others were refused in the first pass
            if op.key in keys:
                yield op
