"""The case file: nothing is lost between writers, and no change of a line goes unnoticed."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from checkers.audit.case import Case, CaseError
from harness.core.errors import UserError

AT = "2026-11-30T12:00:00Z"


def three(folder: Path) -> Case:
    case = Case(folder / "a.case")
    for number, kind in enumerate(["open", "add", "assign"]):
        case.append(kind, {"number": number}, AT)
    return case


def test_entries_come_back_in_order(tmp_path: Path) -> None:
    case = three(tmp_path)
    assert [entry.kind for entry in case.read()] == ["open", "add", "assign"]
    assert case.append("assign", {"owner": "b"}, AT, corrects=3).corrects == 3
    with pytest.raises(UserError, match="no entry 9"):
        case.append("assign", {}, AT, corrects=9)


@pytest.mark.parametrize("line", [1, 2, 3])
def test_an_edited_line_is_named(tmp_path: Path, line: int) -> None:
    case = three(tmp_path)
    lines = case.path.read_text().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(f'"number":{line - 1}', '"number":9')
    case.path.write_text("".join(lines))
    # The next line tells that this one is another; for the last line the head does.
    with pytest.raises(CaseError, match=rf"line ({line}|{line + 1}) "):
        case.read()


@pytest.mark.parametrize("line", [1, 2, 3])
def test_a_dropped_line_is_named(tmp_path: Path, line: int) -> None:
    case = three(tmp_path)
    lines = case.path.read_text().splitlines(keepends=True)
    del lines[line - 1]
    case.path.write_text("".join(lines))
    with pytest.raises(CaseError, match=rf"line {line} "):
        case.read()


def test_lines_that_changed_places_are_named(tmp_path: Path) -> None:
    case = three(tmp_path)
    one, two, last = case.path.read_text().splitlines(keepends=True)
    case.path.write_text(one + last + two)
    with pytest.raises(CaseError, match="line 2 "):
        case.read()


def test_a_cut_within_the_last_line_is_named(tmp_path: Path) -> None:
    case = three(tmp_path)
    case.path.write_bytes(case.path.read_bytes()[:-5])
    with pytest.raises(CaseError, match="line 3 of 3 is missing"):
        case.read()


def test_a_missing_head_is_noticed(tmp_path: Path) -> None:
    case = three(tmp_path)
    case.head.unlink()
    with pytest.raises(CaseError, match="is missing"):
        case.read()


def test_a_kill_within_an_append_leaves_a_file_that_can_be_read_and_goes_on(
    tmp_path: Path,
) -> None:
    case = three(tmp_path)
    with case.path.open("ab") as file:
        file.write(b'{"n":4,"previous":"')
    assert len(case.read()) == 3
    assert case.append("add", {}, AT).n == 4
    assert len(case.read()) == 4


def test_a_kill_between_line_and_head_loses_nothing(tmp_path: Path) -> None:
    case = three(tmp_path)
    head = case.head.read_text()
    case.append("add", {"late": True}, AT)
    case.head.write_text(head)
    assert len(case.read()) == 4
    case.append("add", {}, AT)
    assert [entry.n for entry in case.read()] == [1, 2, 3, 4, 5]


def _write(path: str, who: int) -> None:
    for number in range(20):
        Case(Path(path)).append("add", {"who": who, "number": number}, AT)


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    path = str(tmp_path / "b.case")
    writers = [context.Process(target=_write, args=(path, who)) for who in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0]
    entries = Case(Path(path)).read()
    found = sorted((entry.data["who"], entry.data["number"]) for entry in entries)
    assert found == [(who, number) for who in range(2) for number in range(20)]


def _write_for_ever(path: str) -> None:
    number = 0
    while True:
        number += 1
        Case(Path(path)).append("add", {"number": number, "filling": "x" * 2000}, AT)


def test_a_writer_that_is_killed_leaves_a_whole_case_that_goes_on(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    case = Case(tmp_path / "c.case")
    for turn in range(3):
        writer = context.Process(target=_write_for_ever, args=(str(case.path),))
        writer.start()
        size = case.path.stat().st_size if case.path.exists() else 0
        while writer.is_alive():
            grown = case.path.stat().st_size if case.path.exists() else 0
            if grown > size + 5_000:
                assert writer.pid is not None
                os.kill(writer.pid, signal.SIGKILL)
                break
        writer.join(30)
        entries = case.read()
        assert [entry.n for entry in entries] == list(range(1, len(entries) + 1))
        assert case.append("assign", {"turn": turn}, AT).n == len(entries) + 1
