"""Small histories with known verdicts, in the notation of ``sketch.history``.

Each row: name, model, its options, the history, whether it is linearizable.  The names' first
letter says the kind (M mutex, R reentrant, S semaphore, W read/write, F fenced, T resource, C
register, L lease).
"""

from __future__ import annotations

from typing import Any

from checkers.models import make
from checkers.models.base import Model
from harness.core.history import Interval
from tests.checkers import sketch

Row = tuple[str, str, dict[str, Any], str, bool]

EXAMPLES: list[Row] = [
    ("M1", "mutex", {}, "A a 0-2; R a 5-8; A b 1-7; R b 9-10", True),
    ("M2", "mutex", {}, "A a 0-2; R a 7-8; A b 3-5; R b 9-10", False),
    ("M3", "mutex", {}, "A a 0-2; R a 4-9; A b 3-6; R b 10-11", True),
    ("M4", "mutex", {}, "A a 0-2; A b 3-5; R b 6-7", False),
    ("M5", "mutex", {}, "A a 0-2; R a 4-*; A b 3-6; R b 7-8", True),
    ("M6", "mutex", {}, "A a 0-2; R a 7-*; A b 3-6; R b 8-9", False),
    ("M7", "mutex", {}, "A a 0-*; A b 2-4; R b 6-7", True),
    ("M8", "mutex", {}, "A a 0-*; R a 3-9; A b 2-5; R b 7-8", True),
    ("M9", "mutex", {}, "A a 0-*; R a 5-7; A b 2-4; R b 8-9", False),
    ("M10", "mutex", {}, "A a 0-*; R a 4-8; A b 1-*; R b 5-7; A c 2-3; R c 6-9", True),
    ("M11", "mutex", {}, "A a 0-*; R a 4-6; A b 1-2; R b 3-9; A c 5-7; R c 8-10", True),
    ("M12", "mutex", {}, "A a 0-2; R a 5-6 fail", False),
    ("M13", "mutex", {}, "A a 0-2; R a 3-*; A b 4-6; R b 7-8", True),
    ("M14", "mutex", {}, "A a 0-2; R a 4-6; A b 1-4; R b 7-8", True),
    ("R1", "reentrant", {}, "A a 0-1; A a 2-3; R a 4-5; A b 1-9; R a 6-7; R b 10-11", True),
    ("R2", "reentrant", {}, "A a 0-1; A a 2-3; R a 4-5; A b 3-6; R b 8-9; R a 10-11", False),
    ("R3", "reentrant", {}, "A a 0-1; A a 2-*; A b 1-6; R b 7-8", False),
    ("R4", "reentrant", {}, "A a 0-1; A a 2-3; R a 4-*; A b 1-6; R b 7-8", False),
    ("R5", "reentrant", {}, "A a 0-1; R a 2-3; R a 4-5", False),
    ("S1", "semaphore", {"k": 2}, "A a 0-1; A b 2-3; R a 6-7; R b 8-9", True),
    ("S2", "semaphore", {"k": 2}, "A a 0-1; A b 2-3; A c 4-5; R a 6-7; R b 8-9; R c 10-11", False),
    ("S3", "semaphore", {"k": 2}, "A a 0-1; A b 2-3; R a 4-9; A c 1-6; R b 8-9; R c 10-11", True),
    ("S4", "semaphore", {"k": 2}, "A a 0-1; A b 2-3; A c 1-*; R c 4-6; R a 7-8; R b 9-10", False),
    ("W1", "rwlock", {}, "S a 0-1; S b 2-3; U a 4-5; U b 6-7", True),
    ("W2", "rwlock", {}, "S a 0-1; X b 2-3; U a 4-5; U b 6-7", False),
    ("W3", "rwlock", {}, "S a 0-1; S b 3-4; U a 5-6; X w 2-*; U w 3-8; U b 9-10", False),
    ("W4", "rwlock", {}, "S a 0-1; U a 4-5; X w 2-*; U w 3-8; S b 5-7; U b 9-10", True),
    ("F1", "fenced", {}, "A a 0-2 t=1; R a 3-4; A b 5-6 t=2; R b 7-8", True),
    ("F2", "fenced", {}, "A a 0-2 t=5; R a 3-4; A b 5-6 t=4; R b 7-8", False),
    ("F3", "fenced", {}, "A a 0-7 t=2; R a 8-9; A b 1-3 t=1; R b 4-5", True),
    ("F4", "fenced", {}, "A a 0-2 t=1; R a 3-4; A x 1-*; A b 5-6 t=3; R b 7-8", True),
    ("F5", "fenced", {}, "A a 0-2 t=1; R a 7-8; A b 3-5 t=2; R b 9-10", False),
    ("T1", "store", {}, "w a 0-1 t=1; w b 2-3 t=2; w a 4-5 t=1 fail", True),
    ("T2", "store", {}, "w a 0-1 t=1; w b 2-3 t=2; w a 4-5 t=1", False),
    ("T3", "store", {}, "w b 0-4 t=2; w a 1-3 t=1", True),
    ("T4", "store", {}, "w a 0-1 t=2; w b 2-3 t=2 fail", False),
    ("T5", "store", {}, "w b 0-* t=3; w a 1-2 t=2 fail; w a 3-4 t=2 fail", True),
    ("T6", "store", {}, "w b 0-* t=3; w a 1-2 t=2 fail; w a 3-4 t=2", False),
    ("C1", "cas", {"initial": 0}, "c a 0-3 v=0>1; c b 1-5 v=1>2; r c 4-6 v=2", True),
    ("C2", "cas", {"initial": 0}, "c a 0-3 v=0>1; c b 1-5 v=0>2", False),
    ("C3", "cas", {"initial": 0}, "w a 0-1 v=1; w b 2-3 v=2; r c 4-5 v=1", False),
    ("C4", "cas", {"initial": 0}, "w a 0-* v=1; w b 2-3 v=2; r c 4-5 v=2; r d 6-7 v=1", True),
    ("C5", "cas", {"initial": 0}, "w a 0-* v=1; w b 2-3 v=2; r c 4-5 v=1; r d 6-7 v=2", False),
    ("C6", "cas", {"initial": 0}, "c a 0-* v=0>1; c b 2-3 v=1>2; r d 4-5 v=0", False),
    ("C7", "cas", {"initial": 0}, "c a 0-* v=0>1; c b 2-3 v=0>9 fail", True),
    ("L1", "lease", {"ttl_ns": 10}, "A a 0-2; A b 8-13", True),
    ("L2", "lease", {"ttl_ns": 10}, "A a 0-2; A b 3-8", False),
    ("L3", "lease", {"ttl_ns": 10}, "A a 0-2; N a 7-8; A b 9-15", False),
    ("L4", "lease", {"ttl_ns": 10}, "A a 0-2; R a 5-6 fail", False),
    ("L5", "lease", {"ttl_ns": 10}, "A a 0-2; A b 10-12; R a 13-14 fail", True),
    ("L6", "lease", {"ttl_ns": 10}, "A a 0-2; R a 4-*; A b 3-6", True),
]
NAMES = [row[0] for row in EXAMPLES]
NEGATIVE = [row for row in EXAMPLES if not row[4]]


def intervals(row: Row) -> list[Interval]:
    """The operations of an example; reentrant locks know owners only, so they get no holds."""
    return sketch.history(row[3], holds=row[1] != "reentrant", key="k").intervals()


def model_of(row: Row) -> Model:
    return make(row[1], **row[2])
