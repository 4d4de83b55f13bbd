"""report.html: one file that opens anywhere, loads nothing and shows the moment it broke.

    html(report, history, context, nodes=["redis1"])

What was claimed and what broke stand first, in words; then the messages that led to it, the
timeline, and everything that a doubter asks for.  Without JavaScript the words, the diagram and all
tables are still there; only the timeline and the plots need it.

Trap: sizes.  A million operations must stay below 15 MB and open in seconds: see columns.py for how
they are packed, and assets/timeline.js for how they are drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from harness.core.history import History
from harness.core.limits import REPORT_STORIES_MAX
from harness.core.protocols import CheckContext, FaultWindow
from harness.core.result import Result, Valid
from harness.report.document import RunReport, applies, masked, replay_line
from harness.report.marks import Mark
from harness.report.scene import Names
from harness.report.sequence import Sequence as Diagram
from harness.report.sequence import sequence
from harness.report.story import Story, story
from harness.report.templating import base64_text, page
from harness.report.text import (
    HEADLINES,
    SIDES,
    TONES,
    WORDS,
    facts_line,
    milliseconds,
    picture_lines,
)
from harness.report.timeline import Timeline, timeline
from harness.report.waits import waits

STYLES = ["page.css", "report.css", "uplot/uPlot.min.css"]
SCRIPTS = [
    "uplot/uPlot.iife.min.js",
    "theme.js",
    "columns.js",
    "lanes.js",
    "timeline.js",
    "plots.js",
    "report.js",
]
SIGNS = {"good": "✓", "bad": "✖", "doubt": "?", "broken": "!"}
_OPS_SHOWN = 6
_ALIKE_SHOWN = 3
_SAW = {  # by claim and verdict
    ("holds", "as-claimed"): "the lock to hold, and it did",
    ("holds", "violation"): "the lock to hold, and it did not",
    ("violation", "as-claimed"): "the lock to fail, to show how, and it did",
    ("violation", "other-than-claimed"): "the lock to fail, and it did, but in another way",
    ("violation", "canary-passed"): "the lock to fail, and no failure was seen",
    ("may-fail", "as-claimed"): "nothing for certain: the lock may fail here",
}
_ENDS = {  # by CheckContext.lease_kind: what ends the lock of a silent holder
    "ttl": "its time to live",
    "session": "its client's session",
    "connection": "its client's connection",
    "none": "its release only",
}


def html(
    report: RunReport, history: History, context: CheckContext, *, nodes: Sequence[str] = ()
) -> str:
    """The page of one run.  nodes: names of the servers, for rows of their own."""
    return html_of(report, timeline(report, history, context, nodes=nodes))


def html_of(report: RunReport, data: Timeline) -> str:
    """The page of a run whose timeline is there already."""
    report = masked(report)
    told, names = _stories(data, report), Names(data)
    tone = TONES.get(report.exit_code, "broken")
    blocks = [(name, base64_text(block.text)) for name, block in data.blocks.items()]
    listed = sum(len(result.anomalies) for result in report.results)
    anomalies, alike = _anomaly_rows(data.marks, names)
    return page(
        "report.html.j2",
        styles=STYLES,
        scripts=SCRIPTS,
        report=report,
        headline=HEADLINES[report.verdict],
        tone=tone,
        sign=SIGNS[tone],
        broke=_broke(report, told),
        heading="What the claim tolerates" if _only_tolerated(report) else "The moment it broke",
        expected=_expected(report),
        claim=_claim(report),
        facts=facts_line(report),
        words=WORDS,
        sides=SIDES,
        stories=told,
        anomalies=anomalies,
        alike=alike,
        more=listed - len(data.marks),
        latency=_latency(report.results),
        quantiles=_QUANTILES,
        waits=waits(data.view),
        fairness=next((r.says for r in report.results if r.checker == "fairness"), ""),
        faults=[_fault_row(fault) for fault in report.faults],
        checkers=[_checker_row(result, names) for result in report.results],
        environment=list(_environment(report, data)),
        replay=replay_line(report) if report.replay else "",
        pictures=_pictures(data.marks),
        meta=data.meta,
        blocks=[*blocks, ("names", base64_text(data.names))],
    )


def _stories(data: Timeline, report: RunReport) -> list[tuple[Story, Diagram]]:
    """The first anomaly of each kind, harm first."""
    kinds: dict[tuple[str, str], Mark] = {}
    for mark in data.marks:
        kinds.setdefault((mark.result.checker, mark.anomaly.kind), mark)
    told = [story(mark, data, report) for mark in list(kinds.values())[:REPORT_STORIES_MAX]]
    return [(one, sequence(one)) for one in told]


def _only_tolerated(report: RunReport) -> bool:
    """Whether the lock held as claimed and every anomaly is of a kind that the claim allows for."""
    found = {result.checker for result in report.results if result.anomalies}
    held = report.verdict == "as-claimed" and report.claim.verdict == "holds"
    return held and found <= set(report.claim.tolerates)


def _broke(report: RunReport, told: Sequence[tuple[Story, Diagram]]) -> str:
    """What happened, in one sentence."""
    if not told:
        return _nothing(report)
    first = told[0][0].broke
    return f"It held as claimed. Tolerated: {first}" if _only_tolerated(report) else first


def _nothing(report: RunReport) -> str:
    if report.valid.safety == Valid.TRUE:
        return "Nothing broke: no checker found a violation of safety."
    if report.valid.safety == Valid.UNKNOWN:
        return "Nobody can tell whether it held: see the checkers that say unknown."
    return report.says


def _expected(report: RunReport) -> str:
    """What the verdict means, to somebody who does not know that a scenario may expect failure."""
    saw = _SAW.get((report.claim.verdict, report.verdict))
    return "" if saw is None else f"This scenario expects {saw}."


def _claim(report: RunReport) -> str:
    claim = report.claim
    by = f", found by {', '.join(claim.by)}" if claim.by else ""
    spared = f" (tolerates {', '.join(claim.tolerates)})" if claim.tolerates else ""
    return f"{claim.verdict}{by}{spared}" + (f": {claim.why}" if claim.why else "")


def _anomaly_rows(
    marks: Sequence[Mark], names: Names
) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """(the first few of each kind, all others by their kind): one cause often shows many times."""
    first: list[dict[str, Any]] = []
    alike: dict[str, list[dict[str, Any]]] = {}
    seen: Counter[str] = Counter()
    for mark in marks:
        row = _anomaly_row(mark, names)
        title = f"{row['kind']} ({row['checker']})"
        seen[title] += 1
        rows = first if seen[title] <= _ALIKE_SHOWN else alike.setdefault(title, [])
        rows.append(row)
    return first, alike


def _anomaly_row(mark: Mark, names: Names) -> dict[str, Any]:
    anomaly = mark.anomaly
    ops = " ".join(map(str, anomaly.ops[:_OPS_SHOWN]))
    return {
        "number": mark.number,
        "placed": bool(mark.ops),
        "at": milliseconds(mark.end_ns) if mark.ops else "",
        "checker": mark.result.checker,
        "kind": anomaly.kind,
        "side": "" if anomaly.side is None else SIDES[anomaly.side],
        "says": names.told(anomaly.says),
        "overlap": "" if anomaly.overlap_ns is None else milliseconds(anomaly.overlap_ns),
        "ops": ops,
    }


_QUANTILES = ("p50", "p90", "p99", "max")


def _latency(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Counts and quantiles of each operation, from the checker that counts."""
    stats = next((r.stats for r in results if r.checker == "stats"), {})
    rows = []
    for f, counts in sorted(stats.get("counts", {}).items()):
        figures = stats.get("latency_ms", {}).get(f, {})
        rows.append(
            {
                "f": f,
                "ok": counts.get("ok", 0),
                "fail": counts.get("fail", 0),
                "info": counts.get("info", 0) + counts.get("open", 0),
                "figures": [figures.get(name, "") for name in _QUANTILES],
            }
        )
    return rows


def _fault_row(fault: FaultWindow) -> dict[str, Any]:
    return {
        "id": fault.id,
        "kind": fault.kind,
        "targets": ", ".join(fault.targets),
        "when": fault.when,
        "start": milliseconds(fault.start_ns).removesuffix(" ms"),
        "end": "never" if fault.end_ns is None else milliseconds(fault.end_ns).removesuffix(" ms"),
        "bit": fault.bit,
        "healed": fault.healed,
        "says": fault.says,
    }


def _checker_row(result: Result, names: Names) -> dict[str, Any]:
    used = applies(result)
    return {
        "name": result.checker,
        "judges": "safety" if result.safety else "liveness",
        "word": WORDS[result.valid] if used else "n/a",
        "tone": str(result.valid) if used else "none",
        "says": names.told(result.says),
    }


def _environment(report: RunReport, data: Timeline) -> list[tuple[str, str]]:
    ttl_ns = data.view.ttl_ns
    rows = [
        ("runtime", report.runtime),
        ("backend", report.backend),
        ("library", report.library),
        ("lock ends with", _ENDS[data.view.context.lease_kind]),
        ("time to live", "" if ttl_ns is None else milliseconds(ttl_ns)),
        *((f"version of {name}", version) for name, version in sorted(report.versions.items())),
        ("started", report.started),
        ("duration", f"{report.duration_ms / 1000:.1f} s"),
        ("seed", "" if report.seed is None else str(report.seed)),
        ("scenario", report.scenario),
        ("stored in", report.run_dir),
    ]
    return [(name, value) for name, value in rows if value]


def _pictures(marks: Sequence[Mark]) -> list[tuple[int, list[str]]]:
    return [(mark.number, picture_lines(mark.anomaly)) for mark in marks if mark.anomaly.picture]
