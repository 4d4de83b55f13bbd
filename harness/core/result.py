"""Verdicts: three-valued truth, who broke, and the operations that prove it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec


class Valid(StrEnum):
    """TRUE: checked and fine.  UNKNOWN: nothing to go by, or out of time.  FALSE: violated."""

    TRUE = "true"
    UNKNOWN = "unknown"
    FALSE = "false"


_BADNESS = {Valid.TRUE: 0, Valid.UNKNOWN: 1, Valid.FALSE: 2}


def merge(verdicts: Iterable[Valid]) -> Valid:
    """The worst of them: FALSE wins over UNKNOWN wins over TRUE.  Nothing at all is UNKNOWN."""
    return max(verdicts, key=_BADNESS.__getitem__, default=Valid.UNKNOWN)


class Side(StrEnum):
    """Who broke: the lock was granted twice / a client believed wrongly / data was harmed."""

    SERVICE = "service"
    CLIENT = "client"
    RESOURCE = "resource"


class Anomaly(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One thing that went wrong.

    kind: short slug, e.g. "double-grant", "stale-write-accepted".  ops: indices of the events in
    the history that prove it (2-6).  says: one sentence with keys, workers and times.
    overlap_ns: how long two holders overlapped, where that makes sense.
    legal_if: what would have made it legal.  picture: the interleaving drawn in ASCII, several
    lines.
    """

    kind: str
    side: Side | None = None
    ops: list[int] = []
    says: str = ""
    overlap_ns: int | None = None
    key: str | None = None
    legal_if: str | None = None
    picture: str | None = None


class Result(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What one checker says.  ``says``: one sentence, also when all is well."""

    checker: str
    valid: Valid
    says: str = ""
    anomalies: list[Anomaly] = []
    stats: dict[str, Any] = {}
    sub: list[Result] = []
    safety: bool = True
    """False for checkers of liveness and fairness: they are reported apart from safety."""
