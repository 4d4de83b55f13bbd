"""The exported schemas describe what is really written, and refuse what is not."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers.audit import as_json, audit
from harness.core.errors import UserError
from harness.core.history import Header, Op
from harness.report.document import document
from harness.schema_export import DIALECT, NAMES, schema
from tests.harness.reports import full


def fits(value: Any, rule: dict[str, Any], root: dict[str, Any]) -> bool:
    """A validator of the few keywords that our schemas use; it fails on any other."""
    known = {
        "$ref", "$defs", "$schema", "$id", "title", "description", "default", "type", "enum",
        "const", "properties", "required", "items", "anyOf", "oneOf", "additionalProperties",
        "prefixItems", "minItems", "maxItems",
    }  # fmt: skip
    assert set(rule) <= known, set(rule) - known
    if "$ref" in rule:
        name = rule["$ref"].removeprefix("#/$defs/")
        if not fits(value, root["$defs"][name], root):
            return False
    if "const" in rule and value != rule["const"]:
        return False
    if "enum" in rule and value not in rule["enum"]:
        return False
    if "anyOf" in rule and not any(fits(value, one, root) for one in rule["anyOf"]):
        return False
    if "oneOf" in rule and sum(fits(value, one, root) for one in rule["oneOf"]) != 1:
        return False
    kinds: dict[str, tuple[type, ...]] = {
        "object": (dict,), "array": (list,), "string": (str,), "integer": (int,),
        "boolean": (bool,), "number": (int, float), "null": (type(None),),
    }  # fmt: skip
    wanted = rule.get("type")
    if wanted is not None:
        names = [wanted] if isinstance(wanted, str) else wanted
        if not any(isinstance(value, kinds[name]) for name in names):
            return False
    if isinstance(value, dict):
        if not set(rule.get("required", ())) <= set(value):
            return False
        rules = rule.get("properties", {})
        rest = rule.get("additionalProperties")
        for name, item in value.items():
            one = rules.get(name, rest)
            if isinstance(one, dict) and not fits(item, one, root):
                return False
    if isinstance(value, list) and isinstance(rule.get("items"), dict):
        return all(fits(item, rule["items"], root) for item in value)
    return True


def line(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


@pytest.mark.parametrize("name", NAMES)
def test_every_schema_names_its_dialect_and_itself(name: str) -> None:
    found = schema(name)
    assert found["$schema"] == DIALECT
    assert found["$id"] == f"urn:lockhavoc:{name}:1"
    json.dumps(found)


def test_history_lines() -> None:
    root = schema("history")
    op = Op(3, 2**60, "nemesis", "info", "pause", None, {"x": [1]}, "busy", {"y": 1})
    assert fits(line(op), root, root)
    assert fits(line(Op(0, 0, 1, "invoke", "acquire")), root, root)
    assert fits(line(Header(ttl_ns=5, initial=[1])), root, root)
    for broken in (
        {},
        {**line(op), "type": "done"},
        {**line(op), "time": "0"},
        {**line(op), "process": None},
        {"schema": "other"},
        {"schema": "lockhavoc/history/1", "ttl_ns": "ten"},
    ):
        assert not fits(broken, root, root)


def test_results_document() -> None:
    root = schema("results")
    found = json.loads(document(full()))
    assert fits(found, root, root)
    assert not fits({**found, "verdict": "fine"}, root, root)
    assert not fits({**found, "results": [{"checker": "x", "valid": "yes"}]}, root, root)


def test_audit_document() -> None:
    root = schema("audit")
    samples = Path(__file__).resolve().parents[1] / "data" / "audit"
    found = json.loads(as_json(audit([samples], as_of=datetime.date(2026, 11, 30))))
    assert found["files"]
    assert fits(found, root, root)
    assert not fits({**found, "schema": "other"}, root, root)
    assert not fits({**found, "files": [{"path": "x"}]}, root, root)


def test_unknown_name_is_refused() -> None:
    with pytest.raises(UserError, match="known: audit, history, results, "):
        schema("nonsense")
