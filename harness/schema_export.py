"""JSON Schemas (2020-12) of what lockhavoc writes and reads, for editors and for foreign tools.

    schema("history")     one line of history.jsonl: an event, or the header
    schema("verdict")     what ``lockhavoc check FILE --json`` prints
    schema("results")     results.json of a run
    schema("retry-context"), schema("retry-decision")     what the retry layer reads and answers

They are made from the same structs that read and write the data, so they cannot lag behind.  The
schema of scenarios comes from ``harness.scenario``.

Trap: JSON Schema's "integer" admits 5.0, our reader does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from checkers.audit import model as audit
from clients.retry import model as retry
from harness.core.errors import UserError
from harness.core.history import OBSERVATIONS, SCHEMA, Header, Op, Type
from harness.report import document, verdict

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema called ``name``; UserError if there is none."""
    if name not in _MAKERS:
        raise UserError(f"no schema called {name!r} (known: {', '.join(sorted(_MAKERS))})")
    found = _MAKERS[name]()
    return {"$schema": DIALECT, "$id": f"urn:lockhavoc:{name}:1", **found}


def _history() -> dict[str, Any]:
    (op, header), components = msgspec.json.schema_components(
        [Op, Header], ref_template="#/$defs/{name}"
    )
    components["Op"]["properties"]["type"] = {"enum": [str(word) for word in Type]}
    components["Op"]["properties"]["error"]["description"] = (
        f"a message, or what the refusal observed: {', '.join(sorted(OBSERVATIONS))}"
    )
    components["Header"]["properties"]["schema"] = {"const": SCHEMA}
    components["Header"]["required"] = ["schema"]
    return {
        "title": "one line of a lockhavoc history",
        # A header has no type, an event has no schema: exactly one of them fits.
        "oneOf": [op, header],
        "$defs": components,
    }


def _struct(struct: type[msgspec.Struct], identifier: str, title: str) -> dict[str, Any]:
    (root,), components = msgspec.json.schema_components([struct], ref_template="#/$defs/{name}")
    components[struct.__name__]["properties"]["schema"] = {"const": identifier}
    return {"title": title, **root, "$defs": components}


_MAKERS: dict[str, Callable[[], dict[str, Any]]] = {
    "audit": lambda: _struct(audit.Record, audit.SCHEMA, "record of an audit"),
    "history": _history,
    "verdict": lambda: _struct(
        verdict.VerdictDocument, verdict.SCHEMA, "verdict on one history file"
    ),
    "results": lambda: _struct(document.RunReport, document.SCHEMA, "results.json of a run"),
    "retry-context": retry.context_schema,
    "retry-decision": retry.decision_schema,
}
NAMES = tuple(sorted(_MAKERS))
