"""Parquet: a million events in a few megabytes, for DuckDB, Polars and pandas (extra `analysis`).

One row an event.  ``value`` and ``extra`` are JSON text, since their shape differs from row to
row; ``process`` is an integer and ``process_name`` is set instead for the nemesis.  The header
is JSON in the file's metadata.

    write_parquet(history.ops, Path("history.parquet"), history.header)
    duckdb: SELECT f, type, count(*) FROM 'history.parquet' GROUP BY ALL

Traps: index and time are 64-bit, larger numbers are refused (inside ``value`` they are text and
exact).  pyarrow takes 140 ms to import, so it is imported only here and only when called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from checkers.interchange.problems import Problems
from harness.core.errors import UserError
from harness.core.history import Header, History, Op

_BATCH = 65_536
_HEADER = b"lockhavoc.header"
_TORN = b"lockhavoc.torn"
_NEEDED = ("index", "time", "process", "type", "f")
_INT64_MAX = 2**63 - 1


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise UserError(
            "Parquet needs the Python package 'pyarrow': pip install 'lockhavoc[analysis]'"
        ) from error
    return pyarrow, pyarrow.parquet


def _schema(arrow: Any, header: Header, *, torn: bool) -> Any:
    word = arrow.dictionary(arrow.int32(), arrow.string())
    return arrow.schema(
        [
            ("index", arrow.int64()),
            ("time", arrow.int64()),
            ("process", arrow.int64()),
            ("process_name", word),
            ("type", word),
            ("f", word),
            ("key", word),
            ("value", arrow.string()),
            ("error", arrow.string()),
            ("extra", arrow.string()),
        ],
        metadata={_HEADER: msgspec.json.encode(header), _TORN: b"1" if torn else b"0"},
    )


def _row(op: Op) -> dict[str, Any]:
    numbered = isinstance(op.process, int)
    for name in ("index", "time", "process"):
        found = getattr(op, name)
        if isinstance(found, int) and not -_INT64_MAX <= found <= _INT64_MAX:
            raise UserError(
                f"event {op.index}: {name} is {found}, Parquet holds 64-bit integers only; "
                "export as JSON lines or EDN"
            )
    return {
        "index": op.index,
        "time": op.time,
        "process": op.process if numbered else None,
        "process_name": None if numbered else op.process,
        "type": op.type,
        "f": op.f,
        "key": op.key,
        "value": None if op.value is None else msgspec.json.encode(op.value).decode(),
        "error": op.error,
        "extra": msgspec.json.encode(op.extra).decode() if op.extra else None,
    }


def write_parquet(
    ops: Iterable[Op], path: Path, header: Header | None = None, *, torn: bool = False
) -> int:
    """Writes the events in row groups of 65,536 (zstd).  Returns their number.  Streams."""
    arrow, parquet = _arrow()
    schema = _schema(arrow, header or Header(), torn=torn)
    count = 0
    remaining = iter(ops)
    try:
        with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
            while rows := [_row(op) for op in islice(remaining, _BATCH)]:
                writer.write_table(arrow.Table.from_pylist(rows, schema=schema))
                count += len(rows)
    except OSError as error:
        raise UserError(f"cannot write {str(path)!r}: {error}") from error
    return count


class ParquetReader:
    """Iterates over the events of a file, a batch of rows at a time; header and torn as known."""

    def __init__(self, path: Path) -> None:
        self.path = path
        arrow, parquet = _arrow()
        try:
            self._file = parquet.ParquetFile(path)
        except (OSError, arrow.ArrowException) as error:
            raise UserError(f"cannot read {str(path)!r} as Parquet: {error}") from error
        names = set(self._file.schema_arrow.names)
        missing = [name for name in _NEEDED if name not in names]
        if missing:
            raise UserError(
                f"{str(path)!r} lacks the columns {', '.join(missing)}; a history needs "
                f"{', '.join(_NEEDED)} and may have process_name, key, value, error, extra"
            )
        self._columns = [n for n in Op.__struct_fields__ if n in names]
        if "process_name" in names:
            self._columns.append("process_name")
        metadata = self._file.schema_arrow.metadata or {}
        self.torn = metadata.get(_TORN) == b"1"
        self.header = self._header(metadata)

    def _header(self, metadata: dict[bytes, bytes]) -> Header:
        if _HEADER not in metadata:
            return Header()
        try:
            return msgspec.json.decode(metadata[_HEADER], type=Header)
        except msgspec.DecodeError as error:
            raise UserError(f"{str(self.path)!r}: bad header in the metadata: {error}") from error

    def __iter__(self) -> Iterator[Op]:
        problems = Problems(self.path, unit="row")
        number = 0
        for batch in self._file.iter_batches(batch_size=_BATCH, columns=self._columns):
            for row in batch.to_pylist():
                number += 1
                try:
                    yield _op(row)
                except (msgspec.DecodeError, RecursionError) as error:
                    problems.add(number, str(error))
        problems.raise_if_any()


def _op(row: dict[str, Any]) -> Op:
    name = row.pop("process_name", None)
    if row["process"] is None:
        row["process"] = name
    for field in ("value", "extra"):
        if row.get(field) is not None:
            row[field] = msgspec.json.decode(row[field])
    if row.get("extra") is None:
        row.pop("extra", None)
    return msgspec.convert(row, Op)


def read_parquet(path: Path) -> History:
    """The whole file as a History.  UserError if columns are missing or rows malformed."""
    reader = ParquetReader(path)
    return History(list(reader), reader.header, torn=reader.torn)
