"""The life of a case on the command line: what closes it, what does not, what reopens it."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from checkers.audit.case import Entry
from checkers.audit.closing import fold, missing
from harness.cli import cli
from harness.core.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "tests" / "data" / "audit"
DIMENSIONS = ("identity", "lease", "fencing", "release_retry", "recovery")
SOON = (datetime.datetime.now(tz=datetime.UTC) + datetime.timedelta(days=30)).date().isoformat()


class Shell:
    """Commands about one case; ``code`` of the last."""

    def __init__(self, folder: Path) -> None:
        self.case = folder / "a.case"
        self.code = 0

    def __call__(self, command: str, *arguments: object) -> str:
        words = ["audit", command, str(self.case), *map(str, arguments)]
        ended: Result = CliRunner().invoke(cli, words, standalone_mode=False)
        if ended.exception is not None:
            raise ended.exception
        self.code = int(ended.return_value)
        return ended.output


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    run = Shell(tmp_path)
    run("open", "--intent", "one rebuild at a time")
    return run


def test_a_faulty_lock_cannot_be_closed_whatever_is_promised(shell: Shell) -> None:
    shell("add", SAMPLES / "a-id-1-plain-delete.faulty.py")
    assert shell.code == 1
    for dimension in DIMENSIONS:
        shell("assign", dimension, "locks team")
        shell("except", dimension, "--reason", "it is fine", "--owner", "me", "--until", SOON)
    said = shell("close")
    assert shell.code == 1
    assert "A-ID-1" in said
    assert "no validation has passed" in said
    assert "no owner" not in said


def test_it_closes_with_evidence_owners_and_bounded_exceptions(shell: Shell) -> None:
    shell("add", SAMPLES / "a-id-1-plain-delete.faulty.py")
    shell("add", SAMPLES / "a-id-1-plain-delete.corrected.py", "--corrects", 2)
    assert shell.code == 2
    said = shell("close")
    assert shell.code == 1
    assert "recovery: unknown, and no exception" in said
    assert "identity: no owner" in said
    assert "identity: unknown" not in said, "the guarded release is evidence"
    for dimension in DIMENSIONS:
        shell("assign", dimension, "locks team")
    for dimension in ("fencing", "recovery"):
        shell("except", dimension, "--reason", "one host", "--owner", "me", "--until", SOON)
    shell("close")
    assert shell.code == 0
    shown = json.loads(shell("show", "--json"))
    assert shell.code == 0
    assert shown["closed"] is True
    closure = shown["entries"][-1]["data"]
    assert closure["owners"]["lease"] == "locks team"
    assert closure["audit"] == 3
    assert "entries, whole" in shell("verify")
    shell("assign", "lease", "somebody else")
    shell("show")
    assert shell.code == 2, "what follows a closure opens the case again"


def test_an_exception_that_is_over_opens_the_case_again() -> None:
    entries = [
        Entry(1, "", "", "add", {"dimensions": dict.fromkeys(DIMENSIONS, "ok"), "findings": []}),
        *(
            Entry(n, "", "", "assign", {"dimension": name, "owner": "x"})
            for n, name in enumerate(DIMENSIONS, 2)
        ),
    ]
    assert missing(fold(entries), as_of=datetime.date(2026, 1, 1)) == []
    entries[0].data["dimensions"]["recovery"] = "unknown"
    data = {"dimension": "recovery", "reason": "r", "owner": "o", "until": "2026-06-30"}
    entries.append(Entry(7, "", "", "except", data))
    assert missing(fold(entries), as_of=datetime.date(2026, 6, 30)) == []
    (late,) = missing(fold(entries), as_of=datetime.date(2026, 7, 1))
    assert "its exception ended 2026-06-30" in late


def test_an_edited_case_is_refused_by_every_command(shell: Shell) -> None:
    shell("assign", "lease", "a")
    shell.case.write_text(shell.case.read_text().replace("one rebuild", "two rebuilds"))
    for command in (("verify",), ("show",), ("close",), ("assign", "lease", "b")):
        with pytest.raises(UserError, match="line 2 does not follow"):
            shell(*command)


def test_an_exception_in_the_past_or_without_reason_is_refused(shell: Shell) -> None:
    with pytest.raises(UserError, match="is over"):
        shell("except", "lease", "--reason", "r", "--owner", "o", "--until", "2020-01-01")
    with pytest.raises(UserError, match="needs a reason"):
        shell("except", "lease", "--reason", " ", "--owner", "o", "--until", SOON)


def test_a_case_is_opened_once_and_before_anything_else(shell: Shell, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="exists"):
        shell("open", "--intent", "again")
    shell.case = tmp_path / "other.case"
    with pytest.raises(UserError, match="open it first"):
        shell("assign", "lease", "a")
    assert not shell.case.exists()
