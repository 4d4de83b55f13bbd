"""Example histories with known verdicts, through monitor, engine and oracle.

A row is (model, name, history in the notation of ``notation.py``, is it legal).
"""

from __future__ import annotations

import pytest

from checkers.engine import check as engine
from checkers.models import make
from checkers.monitors import MONITORS
from checkers.oracle import linearizable
from harness.core.history import Interval
from harness.core.result import Valid
from tests.checkers.notation import intervals

OPTIONS = {
    "semaphore": {"k": 2},
    "lease": {"ttl_ns": 10},
    "cas": {"initial": 0},
}
EXAMPLES = [
    ("mutex", "M1", "A a 0-2; R a 5-8; A b 1-7; R b 9-10", True),
    ("mutex", "M2", "A a 0-2; R a 7-8; A b 3-5; R b 9-10", False),
    ("mutex", "M3", "A a 0-2; R a 4-9; A b 3-6; R b 10-11", True),
    ("mutex", "M4", "A a 0-2; A b 3-5; R b 6-7", False),
    ("mutex", "M5", "A a 0-2; R a 4-*; A b 3-6; R b 7-8", True),
    ("mutex", "M6", "A a 0-2; R a 7-*; A b 3-6; R b 8-9", False),
    ("mutex", "M7", "A a 0-*; A b 2-4; R b 6-7", True),
    ("mutex", "M8", "A a 0-*; R a 3-9; A b 2-5; R b 7-8", True),
    ("mutex", "M9", "A a 0-*; R a 5-7; A b 2-4; R b 8-9", False),
    ("mutex", "M10", "A a 0-*; R a 4-8; A b 1-*; R b 5-7; A c 2-3; R c 6-9", True),
    ("mutex", "M11", "A a 0-*; R a 4-6; A b 1-2; R b 3-9; A c 5-7; R c 8-10", True),
    ("mutex", "M12", "A a 0-2; R a 5-6 fail", False),
    ("mutex", "M13", "A a 0-2; R a 3-*; A b 4-6; R b 7-8", True),
    ("mutex", "M14", "A a 0-2; R a 4-6; A b 1-4; R b 7-8", True),
    ("reentrant", "R1", "A a 0-1; A a 2-3; R a 4-5; A b 1-9; R a 6-7; R b 10-11", True),
    ("reentrant", "R2", "A a 0-1; A a 2-3; R a 4-5; A b 3-6; R b 8-9; R a 10-11", False),
    ("reentrant", "R3", "A a 0-1; A a 2-*; A b 1-6; R b 7-8", False),
    ("reentrant", "R4", "A a 0-1; A a 2-3; R a 4-*; A b 1-6; R b 7-8", False),
    ("reentrant", "R5", "A a 0-1; R a 2-3; R a 4-5", False),
    ("semaphore", "S1", "A a 0-1; A b 2-3; R a 6-7; R b 8-9", True),
    ("semaphore", "S2", "A a 0-1; A b 2-3; A c 4-5; R a 6-7; R b 8-9; R c 10-11", False),
    ("semaphore", "S3", "A a 0-1; A b 2-3; R a 4-9; A c 1-6; R b 8-9; R c 10-11", True),
    ("semaphore", "S4", "A a 0-1; A b 2-3; A c 1-*; R c 4-6; R a 7-8; R b 9-10", False),
    ("rwlock", "W1", "S a 0-1; S b 2-3; U a 4-5; U b 6-7", True),
    ("rwlock", "W2", "S a 0-1; X b 2-3; U a 4-5; U b 6-7", False),
    ("rwlock", "W3", "S a 0-1; S b 3-4; U a 5-6; X w 2-*; U w 3-8; U b 9-10", False),
    ("rwlock", "W4", "S a 0-1; U a 4-5; X w 2-*; U w 3-8; S b 5-7; U b 9-10", True),
    ("fenced", "F1", "A a 0-2 t=1; R a 3-4; A b 5-6 t=2; R b 7-8", True),
    ("fenced", "F2", "A a 0-2 t=5; R a 3-4; A b 5-6 t=4; R b 7-8", False),
    ("fenced", "F3", "A a 0-7 t=2; R a 8-9; A b 1-3 t=1; R b 4-5", True),
    ("fenced", "F4", "A a 0-2 t=1; R a 3-4; A x 1-*; A b 5-6 t=3; R b 7-8", True),
    ("fenced", "F5", "A a 0-2 t=1; R a 7-8; A b 3-5 t=2; R b 9-10", False),
    ("store", "T1", "w a 0-1 t=1; w b 2-3 t=2; w a 4-5 t=1 fail", True),
    ("store", "T2", "w a 0-1 t=1; w b 2-3 t=2; w a 4-5 t=1", False),
    ("store", "T3", "w b 0-4 t=2; w a 1-3 t=1", True),
    ("store", "T4", "w a 0-1 t=2; w b 2-3 t=2 fail", False),
    ("store", "T5", "w b 0-* t=3; w a 1-2 t=2 fail; w a 3-4 t=2 fail", True),
    ("store", "T6", "w b 0-* t=3; w a 1-2 t=2 fail; w a 3-4 t=2", False),
    ("cas", "C1", "c a 0-3 v=0>1; c b 1-5 v=1>2; r c 4-6 v=2", True),
    ("cas", "C2", "c a 0-3 v=0>1; c b 1-5 v=0>2", False),
    ("cas", "C3", "w a 0-1 v=1; w b 2-3 v=2; r c 4-5 v=1", False),
    ("cas", "C4", "w a 0-* v=1; w b 2-3 v=2; r c 4-5 v=2; r d 6-7 v=1", True),
    ("cas", "C5", "w a 0-* v=1; w b 2-3 v=2; r c 4-5 v=1; r d 6-7 v=2", False),
    ("cas", "C6", "c a 0-* v=0>1; c b 2-3 v=1>2; r d 4-5 v=0", False),
    ("cas", "C7", "c a 0-* v=0>1; c b 2-3 v=0>9 fail", True),
    ("lease", "L1", "A a 0-2; A b 8-13", True),
    ("lease", "L2", "A a 0-2; A b 3-8", False),
    ("lease", "L3", "A a 0-2; N a 7-8; A b 9-15", False),
    ("lease", "L4", "A a 0-2; R a 5-6 fail", False),
    ("lease", "L5", "A a 0-2; A b 10-12; R a 13-14 fail", True),
    ("lease", "L6", "A a 0-2; R a 4-*; A b 3-6", True),
]


def read(model: str, text: str) -> list[Interval]:
    return intervals(text, owners=model == "reentrant")


@pytest.mark.parametrize(("model", "name", "text", "legal"), EXAMPLES, ids=[e[1] for e in EXAMPLES])
def test_monitor_says_what_the_table_says(model: str, name: str, text: str, legal: bool) -> None:
    verdict = MONITORS[model](read(model, text), **OPTIONS.get(model, {}))
    if verdict.valid is Valid.UNKNOWN:
        assert name == "C7", verdict.why  # an observation: the general engine decides
        return
    assert verdict.valid is (Valid.TRUE if legal else Valid.FALSE), verdict.says
    if not legal:
        assert 1 <= len(verdict.ops) <= 6
        assert verdict.anomalies[0].legal_if


@pytest.mark.parametrize(("model", "name", "text", "legal"), EXAMPLES, ids=[e[1] for e in EXAMPLES])
def test_engine_and_oracle_say_the_same(model: str, name: str, text: str, legal: bool) -> None:
    found = make(model, **OPTIONS.get(model, {}))
    assert engine(read(model, text), found).valid is (Valid.TRUE if legal else Valid.FALSE)
    assert linearizable(read(model, text), found) is legal


def test_every_family_has_examples() -> None:
    assert len(EXAMPLES) >= 47
    assert {row[0] for row in EXAMPLES} == {
        "mutex",
        "reentrant",
        "semaphore",
        "rwlock",
        "fenced",
        "store",
        "cas",
        "lease",
    }
