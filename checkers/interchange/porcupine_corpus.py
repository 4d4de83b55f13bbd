"""Readers for the recorded histories that Porcupine ships as test data (two formats, 109 files).

    history = read("jepsen/etcd_002.log")       # one register: read, write, cas
    history = read("kv/c10-ok.txt")             # string keys: get, put, append

The etcd logs are lines ``INFO jepsen.util - PROCESS :TYPE :F VALUE`` of Jepsen (initial value nil),
the key-value logs EDN-like maps.  In both the order of the lines is the only clock, so the time of
an event is its line number, in "ns".

Traps: a failed ``cas`` says that the compare did not match, so it gets the error *mismatch*, which
is an observation; a failed read timed out and says nothing.  Lines of other kinds are skipped in
the etcd logs only (they have a few); anywhere else they are an error that names the line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from harness.core.errors import UserError
from harness.core.history import Header, History, Op, Type

_ETCD = re.compile(
    r"INFO\s+jepsen\.util - (?P<process>\d+)\s+:(?P<type>invoke|ok|fail|info)\s+:(?P<f>\w+)\s+"
    r"(?:\[(?P<old>\S+) (?P<new>\S+)\]|(?P<value>\S+))\s*"
)
_KV = re.compile(
    r"\{:process (?P<process>\d+), :type :(?P<type>invoke|ok), :f :(?P<f>get|put|append), "
    r':key "(?P<key>[^"]*)", :value (?:nil|"(?P<value>[^"]*)")\}\s*'
)


def read(path: str | Path) -> History:
    """The history in ``path``: ``*.log`` is an etcd log, anything else a key-value log."""
    path = Path(path)
    text = path.read_text(encoding="utf-8")
    ops = _etcd(text) if path.suffix == ".log" else _key_value(text, str(path))
    return History(ops, Header(name=path.stem))


def _etcd(text: str) -> list[Op]:
    ops: list[Op] = []
    for number, line in enumerate(text.splitlines(), start=1):
        found = _ETCD.fullmatch(line)
        if found is None:
            continue
        kind, f = found["type"], found["f"]
        value: Any = _scalar(found["value"])
        if found["old"] is not None:
            value = [_scalar(found["old"]), _scalar(found["new"])]
        error = "mismatch" if kind == Type.FAIL and f == "cas" else None
        if value == ":timed-out":
            value, error = None, "timed-out"
        ops.append(Op(len(ops), number, int(found["process"]), kind, f, None, value, error))
    return ops


def _scalar(word: str | None) -> int | str | None:
    if word is None or word == "nil":
        return None
    return int(word) if word.removeprefix("-").isdigit() else word


def _key_value(text: str, name: str) -> list[Op]:
    ops: list[Op] = []
    for number, line in enumerate(text.splitlines(), start=1):
        found = _KV.fullmatch(line)
        if found is None:
            raise UserError(f"{name}: line {number} is not a key-value event: {line[:80]!r}")
        process, kind = int(found["process"]), found["type"]
        ops.append(Op(len(ops), number, process, kind, found["f"], found["key"], found["value"]))
    return ops
