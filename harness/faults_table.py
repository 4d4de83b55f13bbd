"""``lockhavoc faults``: backend by fault, for each runtime: yes, or why not.

    rows(runtime="process")      # [Row(runtime="process", backend="redis-single", fault=...)]

Every cell is what the fault itself answers (``Fault.can``) before a run starts, so the table and
a refused scenario never disagree.  Whether the runtime can bring the backend up on *this* machine
is another question, answered above the table.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import click
import msgspec

from harness.core.errors import EXIT_AS_CLAIMED, LockhavocError
from harness.core.protocols import Runtime
from harness.places import Here
from harness.registries import BACKENDS, FAULTS, RUNTIMES, SIM


class Row(msgspec.Struct, frozen=True):
    """One cell of the table; ``why`` is empty if it can be done."""

    runtime: str
    backend: str
    fault: str
    why: str


def places(*, backend: str | None = None, runtime: str | None = None) -> list[Here]:
    """Runtimes by backends, all or those asked for; UserError for an unknown name."""
    if backend is not None and backend != SIM:
        BACKENDS.where(backend)
    found = []
    for name in [runtime] if runtime else RUNTIMES.names():
        here = [SIM] if name == SIM else BACKENDS.names()
        found += [Here(name, one) for one in here if backend in (None, one)]
    return found


def rows(*, backend: str | None = None, runtime: str | None = None) -> list[Row]:
    """Every fault, with its default parameters, in every place."""
    return [
        Row(place.runtime, place.backend, name, FAULTS.load(name)().can(place) or "")
        for place in places(backend=backend, runtime=runtime)
        for name in FAULTS.names()
    ]


def cannot_start(place: Here) -> str:
    """Why this backend cannot be brought up on this machine in this runtime, or ""."""
    try:
        live: Runtime = RUNTIMES.load(place.runtime)()
        return live.can(place.backend) or ""
    except LockhavocError as error:
        return str(error)


def show(*, backend: str | None, runtime: str | None, as_json: bool) -> int:
    """Prints it; always exit 0, since a refusal is an answer and no failure."""
    found = rows(backend=backend, runtime=runtime)
    starts = {place: cannot_start(place) for place in places(backend=backend, runtime=runtime)}
    if as_json:
        document = {
            "cells": [
                {"runtime": r.runtime, "backend": r.backend, "fault": r.fault}
                | {"ok": not r.why, "why": r.why}
                for r in found
            ],
            "places": [
                {"runtime": p.runtime, "backend": p.backend, "ok": not why, "why": why}
                for p, why in starts.items()
            ],
        }
        click.echo(json.dumps(document, indent=2))
        return EXIT_AS_CLAIMED
    for name in dict.fromkeys(place.runtime for place in starts):
        here = [row for row in found if row.runtime == name]
        _show_runtime(name, here, {p.backend: w for p, w in starts.items() if p.runtime == name})
    if not starts:
        click.echo(f"backend {backend!r} does not run in the runtime {runtime!r}")
    return EXIT_AS_CLAIMED


def _show_runtime(runtime: str, found: Sequence[Row], starts: dict[str, str]) -> None:
    click.echo(f"runtime {runtime}")
    for backend, why in starts.items():
        if why:
            click.echo(f"  {backend} cannot start on this machine: {why}")
    reasons: dict[str, int] = {}
    cells = {}
    for row in found:
        if row.why:
            number = reasons.setdefault(row.why, len(reasons) + 1)
        cells[row.fault, row.backend] = f"no [{number}]" if row.why else "yes"
    faults = list(dict.fromkeys(row.fault for row in found))
    width = max(len(name) for name in faults)
    columns = {backend: max(len(backend), 8) for backend in starts}
    head = "  ".join(f"{backend:{size}}" for backend, size in columns.items())
    click.echo(f"  {'fault':{width}}  {head}".rstrip())
    for fault in faults:
        line = "  ".join(f"{cells[fault, one]:{size}}" for one, size in columns.items())
        click.echo(f"  {fault:{width}}  {line}".rstrip())
    for why, number in reasons.items():
        click.echo(f"  [{number}] {why}")
    click.echo("")
