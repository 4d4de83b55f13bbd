"""No cell of ``lockhavoc faults`` says yes without a test of its evidence and of its undo.

The table is compared with what the live tests are parametrised by, read from the tests themselves:
a module says in PLACES where its servers run, a function ``test_it_…`` looks at the evidence,
``test_undone_…`` at the undo, ``test_it_shows_and_is_undone`` at both, and ALSO names the faults
whose test is written by hand.  Faults on workers are tested once (test_faults_worker.py says why).
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

from compose.registry import BACKENDS
from nemesis.registry import FAULTS
from tests.nemesis import test_faults_worker
from tests.nemesis.conformance import UNDOABLE, possible

HERE = Path(__file__).parent
REAL = [(runtime, backend) for runtime in ("docker", "process") for backend in BACKENDS]
PLACES = [*REAL, ("sim", "sim")]
Cells = dict[tuple[str, str], set[str]]


def modules() -> Iterator[ModuleType]:
    for path in sorted(HERE.glob("test_*.py")):
        module = importlib.import_module(f"tests.nemesis.{path.stem}")
        if hasattr(module, "PLACES") and path.name != Path(__file__).name:
            yield module


def names_of(function: FunctionType) -> set[str]:
    """Faults that a test function is parametrised by."""
    found = set()
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":
            arguments, values = mark.args
            words = arguments.split(",") if isinstance(arguments, str) else list(arguments)
            for at, word in enumerate(words):
                if word.strip() in ("name", "kind"):
                    found |= {value if len(words) == 1 else value[at] for value in values}
    return found


def covered() -> tuple[Cells, Cells]:
    """(cells whose evidence a test looks at, cells whose undo a test looks at)."""
    shown: Cells = defaultdict(set)
    undone: Cells = defaultdict(set)
    for module in modules():
        also = set(getattr(module, "ALSO", ()))
        for place in module.PLACES:
            shown[place] |= also
            undone[place] |= also
            for name, function in vars(module).items():
                if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                    if name.startswith("test_it_"):
                        shown[place] |= names_of(function)
                    if name.startswith(("test_undone_", "test_it_shows_and_is_undone")):
                        undone[place] |= names_of(function)
    return shown, undone


SHOWN, UNDONE = covered()


@pytest.mark.parametrize("place", PLACES, ids="-".join)
def test_every_yes_has_a_test_of_its_evidence(place: tuple[str, str]) -> None:
    on_workers = set(test_faults_worker.NAMES) if place in REAL else set()
    lacks = set(possible(FAULTS, *place)) - SHOWN[place] - on_workers
    assert not lacks, f"{place}: yes without a test that looks at the evidence: {sorted(lacks)}"


@pytest.mark.parametrize("place", REAL, ids="-".join)
def test_every_yes_has_a_test_of_its_undo(place: tuple[str, str]) -> None:
    """Not in virtual time, where nothing outlives the process."""
    undoable = set(possible(FAULTS, *place)) & set(UNDOABLE)
    lacks = undoable - UNDONE[place] - set(test_faults_worker.NAMES)
    assert not lacks, f"{place}: yes without a test that looks at the undo: {sorted(lacks)}"


def test_faults_on_workers_are_all_there() -> None:
    assert {n for n in FAULTS if n.startswith("worker-")} == set(test_faults_worker.NAMES)
    undone = {*test_faults_worker.UNDONE, "worker-starve"}
    assert {n for n in test_faults_worker.NAMES if n in UNDOABLE} <= undone


def test_a_missing_test_would_be_noticed() -> None:
    """That the comparison can fail: a fault that nobody tests is in no cell."""
    assert all("no-such-fault" not in names for names in SHOWN.values())
    assert "blackhole" in SHOWN["docker", "redlock5"]
    assert "blackhole" not in SHOWN["docker", "no-such-backend"]
