"""Pages over many runs: index with filters, campaign of a scenario, matrix, comparison of two.

    index(runs, Filters(verdict="violation"))
    matrix(runs)

Each is a function of the list of stored runs.  They need no JavaScript: filters and comparisons are
forms that ask for another page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from harness.core.errors import EXIT_AS_CLAIMED
from harness.core.result import Result, Valid
from harness.report.document import RunReport, applies, replay_line
from harness.report.templating import page
from harness.report.text import HEADLINES, TONES, WORDS, fault_line
from harness.stored_runs import StoredRun

STYLES = ["page.css", "lists.css"]
SCRIPTS = ["theme.js"]
ROWS_MAX = 300  # of one page; older ones stand on the next
UNFINISHED = "unfinished"
HEAD = {**HEADLINES, UNFINISHED: "UNFINISHED"}


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """What the index is narrowed to; empty means everything."""

    verdict: str = ""
    backend: str = ""
    library: str = ""
    fault: str = ""
    name: str = ""

    def passes(self, run: StoredRun) -> bool:
        """Whether a run is shown."""
        facts = run.facts
        return (
            self.verdict in ("", facts.verdict)
            and self.backend in ("", facts.backend)
            and self.library in ("", facts.library)
            and (not self.fault or self.fault in run.kinds)
            and self.name in ("", run.name)
        )

    def query(self, **more: object) -> str:
        """As the end of an address."""
        fields = {**msgspec.structs.asdict(self), **more}
        return urlencode({name: value for name, value in fields.items() if value not in ("", 0)})


def index(runs: Sequence[StoredRun], filters: Filters, *, number: int = 0) -> str:
    """The list of runs that pass the filters.  number: of the page, from 0."""
    passed = [run for run in runs if filters.passes(run)]
    shown = passed[number * ROWS_MAX : (number + 1) * ROWS_MAX]
    choices = {
        "verdict": _sorted(run.facts.verdict for run in runs),
        "backend": _sorted(run.facts.backend for run in runs),
        "library": _sorted(run.facts.library for run in runs),
        "fault": _sorted(kind for run in runs for kind in run.kinds),
        "name": _sorted(run.name for run in runs),
    }
    older = f"/?{filters.query(page=number + 1)}" if len(passed) > len(shown) and shown else ""
    return _page(
        "index.html.j2",
        choices=choices,
        chosen=msgspec.structs.asdict(filters),
        rows=[_row(run) for run in shown],
        preset=_preset(shown),
        total=len(runs),
        passed=len(passed),
        older=older if (number + 1) * ROWS_MAX < len(passed) else "",
        newer=f"/?{filters.query(page=number - 1)}" if number else "",
    )


def campaign(runs: Sequence[StoredRun], name: str) -> str:
    """All runs of one scenario: how often it went as claimed, and which seeds did not."""
    mine = [run for run in runs if run.name == name]
    outcomes = Counter(run.facts.verdict for run in mine)
    violated = sum(run.facts.valid.safety == Valid.FALSE for run in mine)
    bad = [run for run in mine if run.facts.exit_code != EXIT_AS_CLAIMED]
    return _page(
        "campaign.html.j2",
        name=name,
        rows=[_row(run) for run in mine],
        preset=_preset(mine),
        outcomes=[(HEAD.get(word, word), count) for word, count in outcomes.most_common()],
        total=len(mine),
        violated=violated,
        seeds=[
            (f"/run/{_path(run)}/", run.facts.seed) for run in bad if run.facts.seed is not None
        ],
        claim=mine[0].facts.claim if mine else None,
    )


def matrix(runs: Sequence[StoredRun]) -> str:
    """Library by fault: how many runs, and the worst that came of them."""
    libraries = _sorted(run.facts.library for run in runs)
    kinds = _sorted(kind for run in runs for kind in run.kinds)
    rows = []
    for library in libraries:
        cells = []
        for kind in kinds:
            here = [r for r in runs if r.facts.library == library and kind in r.kinds]
            cells.append(_cell(here, Filters(library=library, fault=kind)))
        rows.append({"library": library, "cells": cells})
    return _page("matrix.html.j2", kinds=kinds, rows=rows)


def compare(left: tuple[str, RunReport], right: tuple[str, RunReport]) -> str:
    """Two runs side by side; what differs is marked."""
    sides = (left[1], right[1])
    sections = [
        ("Run", _pairs(sides, _run_facts)),
        ("Checkers", _pairs(sides, _checker_facts)),
        ("Faults", _pairs(sides, _fault_facts)),
        ("Latency", _pairs(sides, _latency_facts)),
        ("Versions", _pairs(sides, lambda report: dict(report.versions))),
    ]
    return _page(
        "compare.html.j2",
        ids=[left[0], right[0]],
        links=[f"/run/{quote(identity)}/" for identity in (left[0], right[0])],
        sections=[(title, rows) for title, rows in sections if rows],
    )


def problem(title: str, says: str) -> str:
    """A page for what went wrong."""
    return _page("problem.html.j2", title=title, says=says)


def listing(identity: str, files: Sequence[tuple[str, int]]) -> str:
    """The files of one run: (path, bytes)."""
    return _page(
        "listing.html.j2",
        id=identity,
        zip=f"/zip/{quote(identity)}",
        back=f"/run/{quote(identity)}/",
        files=[(name, f"{quote(name)}", size) for name, size in files],
    )


def _page(template: str, **values: Any) -> str:
    return page(template, styles=STYLES, scripts=SCRIPTS, **values)


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name})


def _path(run: StoredRun) -> str:
    return f"{quote(run.name)}/{quote(run.stamp)}"


def _preset(runs: Sequence[StoredRun]) -> list[str]:
    """The two newest runs that can be compared, empty strings where there are none."""
    return [*[run.id for run in runs if run.facts.verdict != UNFINISHED][:2], "", ""][:2]


def _row(run: StoredRun) -> dict[str, Any]:
    facts = run.facts
    return {
        "id": run.id,
        "link": f"/run/{_path(run)}/",
        "files": f"/files/{_path(run)}",
        "zip": f"/zip/{_path(run)}",
        "campaign": f"/campaign/{quote(run.name)}",
        "name": run.name,
        "headline": HEAD.get(facts.verdict, facts.verdict),
        "tone": _tone(run),
        "unfinished": facts.verdict == UNFINISHED,
        "claim": facts.claim.verdict,
        "says": facts.says,
        "backend": facts.backend,
        "library": facts.library,
        "runtime": facts.runtime,
        "kinds": ", ".join(run.kinds),
        "seed": "" if facts.seed is None else str(facts.seed),
        "started": facts.started[:16].replace("T", " "),
        "events": facts.ops,
    }


def _tone(run: StoredRun) -> str:
    if run.facts.verdict == UNFINISHED:
        return "none"
    return TONES.get(run.facts.exit_code, "broken")


def _cell(runs: Sequence[StoredRun], filters: Filters) -> dict[str, Any]:
    if not runs:
        return {"count": 0, "tone": "none", "words": "", "link": ""}
    tones = {_tone(run) for run in runs}
    tone = next(t for t in ("bad", "broken", "doubt", "good", "none") if t in tones)
    violated = sum(run.facts.valid.safety == Valid.FALSE for run in runs)
    claimed = sum(run.facts.exit_code == EXIT_AS_CLAIMED for run in runs)
    words = f"{claimed} of {len(runs)} as claimed"
    if violated:
        words += f", {violated} violated"
    return {"count": len(runs), "tone": tone, "words": words, "link": f"/?{filters.query()}"}


def _pairs(sides: tuple[RunReport, RunReport], of: Any) -> list[dict[str, Any]]:
    left, right = of(sides[0]), of(sides[1])
    rows = []
    for name in dict.fromkeys([*left, *right]):
        values = [str(side.get(name, "–")) for side in (left, right)]
        rows.append({"name": name, "values_": values, "differs": values[0] != values[1]})
    return rows


def _run_facts(report: RunReport) -> dict[str, object]:
    return {
        "outcome": HEADLINES[report.verdict],
        "says": report.says,
        "claim": report.claim.verdict,
        "safety": WORDS[report.valid.safety],
        "liveness": WORDS[report.valid.liveness],
        "scenario": f"{report.name} ({report.scenario})",
        "seed": report.seed,
        "runtime": report.runtime,
        "backend": report.backend,
        "library": report.library,
        "started": report.started,
        "events": report.ops,
        "repeat": replay_line(report) if report.replay else "",
    }


def _checker_facts(report: RunReport) -> dict[str, object]:
    return {result.checker: _checker(result) for result in report.results}


def _checker(result: Result) -> str:
    if not applies(result):
        return "n/a"
    found = f", {len(result.anomalies)} anomalies" if result.anomalies else ""
    return f"{WORDS[result.valid]}{found}"


def _fault_facts(report: RunReport) -> dict[str, object]:
    return {f"#{fault.id}": fault_line(fault) for fault in report.faults}


def _latency_facts(report: RunReport) -> dict[str, object]:
    stats = next((r.stats for r in report.results if r.checker == "stats"), {})
    return {
        f"{f} {name}": f"{value} ms"
        for f, figures in stats.get("latency_ms", {}).items()
        for name, value in figures.items()
    }
