"""Cells side by side: each in its own process, in the order of the plan, taken down on a signal."""

from __future__ import annotations

import signal
from pathlib import Path

import msgspec
import pytest

from harness.verify.document import Cell, load
from harness.verify.side_by_side import Order, Outcome, run_all
from tests.live.command import leftovers, lockhavoc, require, started, wait_for


def order(situation: str, store: Path, library: str = "recipe-redis") -> Order:
    return Order(
        library=library, backend="sim", runtime="sim", situation=situation, seed=3,
        store_dir=str(store),
    )  # fmt: skip


def test_processes_answer_with_the_same_cell_as_a_run_in_here(tmp_path: Path) -> None:
    names = ["holder-pause", "worker-killed", "reply-cut"]
    found: dict[int, Outcome] = {}
    begun: list[int] = []
    orders = [order(name, tmp_path / "a") for name in names]
    cut = run_all(orders, jobs=2, began=begun.append, ended=found.__setitem__)
    assert not cut
    assert begun == [0, 1, 2]
    here = lockhavoc(
        "verify", "recipe-redis", "--runtime", "sim", "--seed", "3", "--json", "-q",
        *(word for name in names for word in ("--only", name)), "--store", str(tmp_path / "b"),
    )  # fmt: skip
    same = {cell["situation"]: cell for cell in msgspec.json.decode(here.stdout)["cells"]}
    for at, name in enumerate(names):
        cell = found[at].cell
        assert cell is not None
        assert cell.situation == name
        assert (cell.seen, cell.found) == (same[name]["seen"], same[name]["found"])


def test_a_process_that_dies_is_an_unknown_cell_with_its_last_words(tmp_path: Path) -> None:
    found: dict[int, Outcome] = {}
    orders = [order("failover", tmp_path), order("worker-killed", tmp_path)]
    run_all(orders, jobs=2, began=lambda _: None, ended=found.__setitem__)
    dead, alive = found[0].cell, found[1].cell
    assert dead is not None
    assert alive is not None
    assert dead.verdict == "unknown"
    assert "exit status 1" in dead.says
    assert "does not apply" in dead.says
    assert alive.verdict == "as-claimed"


BOTH = (
    "verify", "redis-py", "--only", "holder-pause", "--only", "renewed", "--backend",
    "redis-single", "--runtime", "process", "--seed", "1", "--jobs", "2",
)  # fmt: skip


def running(store: Path) -> bool:
    """Both cells have begun to record."""
    return len(list(store.glob("verify-redis-py-*/current/history.jsonl"))) == 2


@pytest.mark.live
def test_ctrl_c_takes_all_of_them_down_and_keeps_what_they_saw(tmp_path: Path) -> None:
    require("process")
    with started(*BOTH, "--store", str(tmp_path)) as process:
        wait_for(lambda: running(tmp_path), "two runs")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    kept = load(tmp_path / "verify" / "redis-py" / "latest" / "verify.json")
    assert kept.interrupted
    assert [cell.situation for cell in kept.cells] == ["holder-pause", "renewed"]
    assert all((Path(cell.run_dir) / "report.html").exists() for cell in kept.cells)
    assert leftovers(tmp_path) == []


@pytest.mark.live
def test_who_is_killed_leaves_no_cell_running(tmp_path: Path) -> None:
    require("process")
    with started(*BOTH, "--store", str(tmp_path)) as process:
        wait_for(lambda: running(tmp_path), "two runs")
        process.kill()
        process.wait()
        wait_for(lambda: not leftovers(tmp_path), "the cells to have torn down")


def test_a_cell_survives_the_way_between_processes() -> None:
    outcome = Outcome(
        cell=Cell(backend="b", runtime="r", situation="s", claims={"grant": "holds"}),
        versions={"a": "1"}, interrupted=True,
    )  # fmt: skip
    assert msgspec.json.decode(msgspec.json.encode(outcome), type=Outcome) == outcome
