"""Malformed histories are named by rule and line, and never judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checkers.interchange import read_history
from checkers.validate import problems, validate
from harness.core.errors import UserError
from harness.core.history import History, Op


def event(index: int, time: int, process: int | str, kind: str, **fields: Any) -> Op:
    return Op(index, time, process, kind, fields.pop("f", "acquire"), fields.pop("key", "k"))


GOOD = [event(0, 0, 0, "invoke"), event(1, 5, 0, "ok")]


@pytest.mark.parametrize(
    ("rule", "extra"),
    [
        ("index-grows", event(1, 9, 1, "invoke")),
        ("time-goes-on", event(2, 4, 1, "invoke")),
        ("known-type", event(2, 9, 1, "invoked")),
        ("known-f", event(2, 9, 1, "invoke", f="aquire")),
        ("completion-has-invoke", event(2, 9, 1, "ok")),
        ("one-completion", event(2, 9, 0, "info")),
    ],
)
def test_each_rule(rule: str, extra: Op) -> None:
    (problem,) = problems(History([*GOOD, extra]))
    assert problem.rule == rule
    assert problem.index == extra.index


@pytest.mark.parametrize(
    ("rule", "fields"), [("same-f", {"f": "release"}), ("same-key", {"key": "other"})]
)
def test_a_completion_repeats_its_invoke(rule: str, fields: dict[str, Any]) -> None:
    (problem,) = problems(History([GOOD[0], event(1, 5, 0, "ok", **fields)]))
    assert problem.rule == rule


def test_what_is_well_formed() -> None:
    history = [
        *GOOD,
        event(2, 6, 0, "invoke"),
        event(3, 6, 0, "invoke", f="release"),  # leaves the acquire open for ever
        event(9, 6, "nemesis", "info", f="worker-pause"),
        event(10, 7, "nemesis", "info", f="lost"),
    ]
    assert problems(History(history)) == []
    validate(History(history))


def test_the_message_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(
        '{"index":0,"time":0,"process":0,"type":"invoke","f":"acquire"}\n\n'
        '{"index":1,"time":1,"process":1,"type":"ok","f":"acquire"}\n'
    )
    with pytest.raises(UserError, match="line 3: ok of acquire by process 1 has no invoke"):
        validate(read_history(path))
