"""The exported schemas describe what is really written, and refuse what is not."""

from __future__ import annotations

import datetime
import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # has none

from checkers.audit import as_json, audit
from harness.core.errors import UserError
from harness.core.history import Header, Op
from harness.report.document import document
from harness.scenario import json_schema
from harness.schema_export import DIALECT, NAMES, schema
from tests.harness.reports import full

ROOT = Path(__file__).resolve().parents[2]


def fits(value: Any, rule: dict[str, Any]) -> bool:
    return bool(Draft202012Validator(rule).is_valid(value))


def line(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


@pytest.mark.parametrize("name", NAMES)
def test_every_schema_names_its_dialect_and_itself(name: str) -> None:
    found = schema(name)
    assert found["$schema"] == DIALECT
    assert found["$id"] == f"urn:lockhavoc:{name}:1"
    Draft202012Validator.check_schema(found)


def test_history_lines() -> None:
    root = schema("history")
    op = Op(3, 2**60, "nemesis", "info", "pause", None, {"x": [1]}, "busy", {"y": 1})
    assert fits(line(op), root)
    assert fits(line(Op(0, 0, 1, "invoke", "acquire")), root)
    assert fits(line(Header(ttl_ns=5, initial=[1])), root)
    for broken in (
        {},
        {**line(op), "type": "done"},
        {**line(op), "time": "0"},
        {**line(op), "process": None},
        {"schema": "other"},
        {"schema": "lockhavoc/history/1", "ttl_ns": "ten"},
    ):
        assert not fits(broken, root)


def test_results_document() -> None:
    root = schema("results")
    found = json.loads(document(full()))
    assert fits(found, root)
    assert not fits({**found, "verdict": "fine"}, root)
    assert not fits({**found, "results": [{"checker": "x", "valid": "yes"}]}, root)


def test_audit_document() -> None:
    root = schema("audit")
    samples = ROOT / "tests" / "data" / "audit"
    found = json.loads(as_json(audit([samples], as_of=datetime.date(2026, 11, 30))))
    assert found["files"]
    assert fits(found, root)
    assert not fits({**found, "schema": "other"}, root)
    assert not fits({**found, "files": [{"path": "x"}]}, root)


def test_editors_accept_the_scenarios_of_the_book() -> None:
    rule = json_schema()
    Draft202012Validator.check_schema(rule)
    judge = Draft202012Validator(rule)
    paths = sorted(ROOT.glob("scenarios/*/*.toml"))
    assert len(paths) > 100
    for path in paths:
        found = tomllib.loads(path.read_text())
        problems = [f"{error.json_path}: {error.message}" for error in judge.iter_errors(found)]
        assert problems == [], path
        assert not judge.is_valid({**found, "nonsense": 1})


def test_unknown_name_is_refused() -> None:
    with pytest.raises(UserError, match="known: audit, history, results, "):
        schema("nonsense")
