"""Writes docs/reference from the registries, so that it cannot lag behind the code.

    python -m harness.reference docs/reference

A test fails when a page differs from what this would write.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

import click
from pydantic import BaseModel

from harness.cli import cli
from harness.reference_audit import tables
from harness.registries import BACKENDS, CHECKERS, FAULTS, LIBRARIES
from harness.scenario import Backend, Claim, Client, FaultSpec, Resource, Run, Scenario, Workload
from harness.verify.reference import verification
from harness.workloads.registry import WORKLOADS

NOTE = "<!-- Made by `make reference` from the registries; change the code, not this page. -->\n"


def pages() -> dict[str, str]:
    """File name -> content of every generated page."""
    return {
        "audit.md": _audit(),
        "faults.md": _faults(),
        "checkers.md": _checkers(),
        "libraries.md": _libraries(),
        "backends.md": _backends(),
        "scenario.md": _scenario(),
        "cli.md": _cli(),
        "workloads.md": _workloads(),
        "verify.md": _page("Verification", *(text for text in verification())),
    }


def _page(title: str, *parts: str) -> str:
    return "\n".join([f"# {title}\n", NOTE, *parts]).rstrip() + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def _first_paragraph(thing: Any) -> str:
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def _audit() -> str:
    parts = [f"## {title}\n\n{_table(head, rows)}" for title, head, rows in tables()]
    return _page("Audit", *parts)


def _faults() -> str:
    rows, parameters = [], []
    for name in FAULTS.names():
        fault = FAULTS.load(name)
        servers = ", ".join(fault.families) or "all"
        rows.append((f"`{name}`", fault.acts_on, fault.summary, servers, ", ".join(fault.runtimes)))
        for p in fault.parameters:
            parameters.append((f"`{name}`", f"`{p.name}`", p.unit, str(p.default), p.range, p.help))
    return _page(
        "Faults",
        _table(("fault", "acts on", "what it does", "servers", "runtimes"), rows),
        "## Parameters\n",
        _table(("fault", "parameter", "unit", "default", "values", "meaning"), parameters),
    )


def _workloads() -> str:
    rows, parameters = [], []
    for name in WORKLOADS.names():
        kind = WORKLOADS.load(name)
        rows.append((f"`{name}`", kind.says, kind.shows))
        for p in kind.parameters:
            parameters.append((f"`{name}`", f"`{p.name}`", p.unit, str(p.default), p.range, p.help))
    return _page(
        "Workloads",
        "Chosen by `kind` in `[workload]` of a scenario, parameters in `params`; what is not said "
        "here is as the other keys of [`[workload]`](scenario.md) say.\n",
        _table(("workload", "what the workers do", "what comes out by it"), rows),
        "## Parameters\n",
        _table(("workload", "parameter", "unit", "default", "values", "meaning"), parameters),
    )


def _checkers() -> str:
    rows = []
    for name in CHECKERS.names():
        checker = CHECKERS.load(name)
        kind = "safety" if checker.safety else "liveness"
        rows.append((f"`{name}`", kind, _first_paragraph(checker)))
    return _page("Checkers", _table(("checker", "kind", "what it judges"), rows))


def _libraries() -> str:
    rows = []
    for name in LIBRARIES.names():
        library = LIBRARIES.load(name)
        rows.append(
            (
                f"`{name}`",
                ", ".join(library.backends),
                library.lease,
                ", ".join(library.powers) or "none",
                library.fencing or "none",
                library.loss_signal,
                f"caught by `{library.canary}`" if library.canary else "",
                library.says,
            )
        )
    head = ("library", "servers", "lease", "powers", "fencing", "loss signal", "canary", "what")
    return _page("Lock libraries and canaries", _table(head, rows))


def _backends() -> str:
    rows, options = [], []
    for name in BACKENDS.names():
        spec = BACKENDS.load(name)
        local = spec.local.says if spec.local else f"no: {spec.local_refused}"
        rows.append((f"`{name}`", ", ".join(spec.node_names), local))
        for option, value in spec.options.items():
            choices = ", ".join(value.choices) or "any"
            options.append((f"`{name}`", f"`{option}`", value.default, choices, value.says))
    return _page(
        "Backends",
        _table(("backend", "nodes", "as local processes"), rows),
        "## Options\n",
        _table(("backend", "option", "default", "values", "meaning"), options),
    )


def _scenario() -> str:
    parts = ["Durations are milliseconds; a range `[5, 20]` lets the seed pick.\n"]
    tables: Sequence[tuple[str, type[BaseModel]]] = (
        ("top level", Scenario),
        ("[claim]", Claim),
        ("[backend]", Backend),
        ("[client]", Client),
        ("[workload]", Workload),
        ("[resource]", Resource),
        ("[[faults]]", FaultSpec),
        ("[run]", Run),
    )
    for title, model in tables:
        rows = [
            (
                f"`{field.alias or name}`",
                _type(field.annotation),
                "required" if field.is_required() else _default(field.default),
                field.description or "",
            )
            for name, field in model.model_fields.items()
        ]
        parts += [f"## {title}\n", _table(("key", "type", "default", "meaning"), rows)]
    return _page("Scenario files", *parts)


def _type(annotation: Any) -> str:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    if get_origin(annotation) is tuple and get_args(annotation)[-1] is not Ellipsis:
        return "ms or [lowest, highest]"
    choices = [repr(a) for a in get_args(annotation) if isinstance(a, str)]
    if choices:
        return "one of " + ", ".join(choices)
    if get_origin(annotation) is tuple:
        return "list"
    inner = [a for a in get_args(annotation) if a is not type(None)]
    if type(None) in get_args(annotation) and inner:
        return _type(inner[0])
    origin = get_origin(annotation) or annotation
    names = {dict: "table", int: "int", str: "string", bool: "bool"}
    return names.get(origin, "ms or [lowest, highest]")


def _default(value: Any) -> str:
    if isinstance(value, BaseModel):
        return "see below"
    if isinstance(value, tuple) and len(value) == 2 and value[0] == value[1]:
        return str(value[0])
    if value in ("", None, (), {}):
        return "none"
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _commands(
    words: str, command: click.Command, context: click.Context
) -> Iterator[tuple[str, click.Command]]:
    """A command and all below it, each with the words that call it."""
    yield words, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None, name
            yield from _commands(f"{words} {name}", below, context)


def _cli() -> str:
    parts = []
    top = click.Context(cli, info_name="lockhavoc")
    for words, command in _commands("lockhavoc", cli, top):
        settings = cli.context_settings
        with click.Context(command, info_name=words, terminal_width=96, **settings) as inner:
            parts.append(f"## {words}\n\n```text\n{command.get_help(inner).rstrip()}\n```\n")
    codes = _table(
        ("code", "meaning"),
        [
            ("0", "as claimed"),
            ("1", "violation, or a canary that passed; wins over all others"),
            ("2", "unknown or vacuous"),
            ("254", "wrong usage or input"),
            ("255", "the harness or its surroundings failed"),
            ("130", "interrupted"),
        ],
    )
    return _page("Command line", "## Exit codes\n", codes, *parts)


def main() -> None:
    """Writes all pages below the folder given (docs/reference)."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in pages().items():
        (folder / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
