"""What proves a fix: a scenario, a test and queries for the findings of an audit.

    made = generate(record, inputs, library="")     # Made: files by name, what was left out and why

Each turns from failing to passing when the fix is right: the test drives the very functions that
were found, on a real server, through the interleaving of the rule; the scenario drives the library.
The same record gives the same files.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from checkers.audit.generate import bench_rules
from checkers.audit.generate.queries import queries
from checkers.audit.generate.scenarios import LIBRARY, scenario
from checkers.audit.model import Fact, Finding, Record
from checkers.audit.read import Inputs

_HEAD = '''"""Written by ``lockhavoc audit generate``: each case fails until its finding is mended.

    pytest {name}

Needs pytest, redis and a valkey-server or redis-server on PATH (or LOCKHAVOC_REDIS_PORT, whose data
are emptied).  Functions are called with made-up arguments; write better ones into ARGUMENTS below.
"""
'''
_TAIL = """

ARGUMENTS.update({{}})  # {{"function": {{"parameter": value}}}}
HERE = Path(__file__).resolve().parent
CASES = [
{cases}
]


@pytest.mark.parametrize(("rule", "path", "scopes"), CASES)
def test_ownership(rule: str, path: str, scopes: list[str]) -> None:
    check(rule, str(HERE / path), scopes)
"""


@dataclass
class Made:
    """files: name -> text.  skipped: findings without a test, and why."""

    files: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)


def generate(
    record: Record, inputs: Inputs, into: Path, *, library: str = "", backend: str = ""
) -> Made:
    """Scenarios, a pytest file and queries for all findings of a record."""
    made = Made()
    findings = record.findings
    for rule in sorted({f.rule for f in findings}):
        if rule.startswith(("A-RUN-", "A-LOG-")):
            continue  # seen already: what was seen names the command that shows it again
        own = library or LIBRARY.get(_library(rule, findings, inputs), "redis-py")
        text = scenario(rule, library=own, backend=backend)
        made.files[f"scenarios/{rule.lower()}.toml"] = text
    cases: list[str] = []
    for finding in sorted(findings, key=lambda f: (f.path, f.line, f.rule)):
        scopes, why = _scopes(finding, inputs)
        if why:
            made.skipped.append(f"{finding.rule} at {finding.path}:{finding.line}: {why}")
            continue
        path = os.path.relpath(Path(finding.path).resolve(), into.resolve())
        case = f"    ({finding.rule!r}, {Path(path).as_posix()!r}, {scopes!r}),"
        if case not in cases:
            cases.append(case)
    if cases:
        source = bench_rules.SOURCE.replace("import redis\n", "import pytest\nimport redis\n", 1)
        name = "test_ownership.py"
        tail = _TAIL.format(cases="\n".join(cases))
        made.files[name] = _HEAD.format(name=name) + source + tail
    if findings:
        made.files["queries.md"] = _queries(findings, inputs)
    return made


def _at(finding: Finding, inputs: Inputs) -> list[Fact]:
    """Facts on the lines of a finding."""
    return [
        f
        for f in inputs.facts.all
        if f.place.path == finding.path and finding.line <= f.place.line <= finding.end_line
    ]


def _library(rule: str, findings: list[Finding], inputs: Inputs) -> str:
    for finding in findings:
        if finding.rule == rule:
            for fact in _at(finding, inputs):
                if fact.get("library"):
                    return str(fact.get("library"))
    return ""


def _scopes(finding: Finding, inputs: Inputs) -> tuple[list[str], str]:
    """(functions to call in order, "") or ([], why there is no test)."""
    if not finding.path.endswith(".py"):
        return [], "only Python is driven by a test; use the scenario and the queries"
    if finding.rule not in bench_rules.RULES:
        return [], "no test for this rule; use the scenario and the queries"
    own = [f for f in inputs.facts.all if f.place.path == finding.path]
    families = {f.get("family") for f in own if f.get("family")}
    if families and families != {"redis"}:
        return [], "only Redis is driven by a test; use the scenario and the queries"
    if "async def " in inputs.texts[finding.path]:
        return [], "coroutines are not driven by the test; use the scenario and the queries"
    grants = list(dict.fromkeys(f.scope for f in own if f.kind == "grant"))
    if finding.rule == "A-RETRY-5":
        return grants, ""
    scope = next((f.scope for f in _at(finding, inputs) if f.scope), "")
    if scope in grants or not scope or finding.rule == "A-REC-2":
        return ([scope] if scope else grants), ""
    owner = scope.rpartition(".")[0]
    before = [g for g in grants if g.rpartition(".")[0] == owner]
    return [*(before or grants), scope], ""


def _queries(findings: list[Finding], inputs: Inputs) -> str:
    lines = ["# What to ask in production", ""]
    for kind in sorted({f.kind for f in findings}):
        own = [f for f in findings if f.kind == kind]
        families = sorted(
            {str(x.get("family", "")) for f in own for x in _at(f, inputs) if x.get("family")}
        )
        lines += [f"## {kind}: {', '.join(sorted({f.rule for f in own}))}", ""]
        for family in families or [""]:
            for tool, query, meaning in queries(kind, family):
                entry = [f"{tool}: {meaning}", "", "```", query, "```", ""]
                if entry[0] not in lines:
                    lines += entry
    return "\n".join(lines)
