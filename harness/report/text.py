"""The report on a terminal: what was claimed, what was found, who broke, how to repeat it.

    print(render_text(report))                       # plain text, 100 columns
    print_text(report)                               # colours if stdout is a terminal

The first line says it all, the last line repeats the run.  Piped, with NO_COLOR or with TERM=dumb
it is plain text without a single escape; strings from outside are shown cleaned and masked.

Trap: rich reads ``[word]`` in plain strings as markup, so everything here is a ``Text``.
"""

from __future__ import annotations

import io
import sys
from typing import IO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.core.errors import EXIT_AS_CLAIMED, EXIT_UNKNOWN, EXIT_VIOLATION
from harness.core.limits import ANOMALIES_MAX, ANOMALIES_PER_CHECKER
from harness.core.protocols import FaultWindow
from harness.core.result import Anomaly, Result, Side, Valid
from harness.report.document import RunReport, applies, replay_line
from harness.report.escape import clean_lines, mask, safe

WIDTH = 100
_STYLES = {Valid.TRUE: "green", Valid.UNKNOWN: "yellow", Valid.FALSE: "bold red"}
WORDS = {Valid.TRUE: "ok", Valid.UNKNOWN: "unknown", Valid.FALSE: "VIOLATED"}
_EXITS = {0: "green", 1: "bold red", 2: "yellow"}
TONES = {EXIT_AS_CLAIMED: "good", EXIT_VIOLATION: "bad", EXIT_UNKNOWN: "doubt"}  # else "broken"
SIDES = {
    Side.SERVICE: "the lock service",
    Side.CLIENT: "the client",
    Side.RESOURCE: "the resource",
}
HEADLINES = {
    "as-claimed": "AS CLAIMED",
    "violation": "VIOLATION",
    "other-than-claimed": "VIOLATION, OTHER THAN CLAIMED",
    "canary-passed": "A CANARY PASSED",
    "unknown": "UNKNOWN",
    "harness-failure": "HARNESS FAILURE",
    "interrupted": "INTERRUPTED",
}


def render_text(report: RunReport, *, colour: bool = False, width: int = WIDTH) -> str:
    """The report as text of ``width`` columns, with ANSI colours only if asked for."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    _write(console, report)
    text = out.getvalue()
    return "\n".join(line.rstrip() for line in text.split("\n")) if not colour else text


def print_text(report: RunReport, file: IO[str] | None = None) -> None:
    """Prints the report to ``file`` (stdout), in colour on a terminal that wants it."""
    target = sys.stdout if file is None else file
    console = Console(file=target, highlight=False, markup=False, emoji=False)
    if console.is_terminal and not console.is_dumb_terminal:
        _write(console, report)
    else:
        target.write(render_text(report))


def _write(console: Console, report: RunReport) -> None:
    _headline(console, report)
    _checkers(console, report.results)
    _anomalies(console, report.results)
    _faults(console, report.faults)
    for failure in report.failures:
        console.print(Text(f"harness: {safe(failure)}", style="yellow"))
    _environment(console, report)
    if report.run_dir:
        console.print(Text(f"stored:  {safe(report.run_dir)}"))
    if report.replay:
        # Kept on one line whatever the width: it is there to be pasted.
        console.print(Text(f"repeat:  {safe(replay_line(report))}", style="bold"), soft_wrap=True)


def _headline(console: Console, report: RunReport) -> None:
    style = _EXITS.get(report.exit_code, "magenta")
    title = Text.assemble(
        (HEADLINES[report.verdict], style),
        "  ",
        (safe(report.name), "bold"),
        "  ",
        safe(report.says),
    )
    console.print(title)
    claim = report.claim
    by = f" by {', '.join(claim.by)}" if claim.by else ""
    why = f": {claim.why}" if claim.why else ""
    console.print(Text(safe(f"claimed: {claim.verdict}{by}{why}")))
    safety, liveness = report.valid.safety, report.valid.liveness
    console.print(
        Text.assemble(
            "found:   safety ",
            (WORDS[safety], _STYLES[safety]),
            ", liveness ",
            (WORDS[liveness], _STYLES[liveness]),
        )
    )


def _checkers(console: Console, results: list[Result]) -> None:
    if not results:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    table.add_column("checker", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("says", overflow="fold")
    for result in results:
        word = Text(WORDS[result.valid], style=_STYLES[result.valid])
        if not applies(result):
            word = Text("n/a", style="dim")
        name = safe(result.checker) + ("" if result.safety else " (liveness)")
        table.add_row(Text(name), word, Text(safe(result.says)))
    console.print(table)


def _anomalies(console: Console, results: list[Result]) -> None:
    # Harm first: what the resource suffered says more than what a client believed.
    worst_first = sorted(results, key=lambda result: not _harmed(result))
    found = [(result, anomaly) for result in worst_first for anomaly in result.anomalies]
    shown = [
        (result, anomaly)
        for result in worst_first
        for anomaly in result.anomalies[:ANOMALIES_PER_CHECKER]
    ][:ANOMALIES_MAX]
    for number, (result, anomaly) in enumerate(shown, 1):
        console.print(Text(f"{number}. {anomaly_line(result, anomaly)}", style="bold"))
        console.print(Text(f"   {safe(anomaly.says)}"))
        if anomaly.picture:
            for line in picture_lines(anomaly):
                console.print(Text(f"   {line}"), soft_wrap=True)
        if anomaly.legal_if:
            console.print(Text(f"   legal if: {safe(anomaly.legal_if)}"))
    if len(found) > len(shown):
        console.print(Text(f"... and {len(found) - len(shown)} more, all in results.json"))
    if found:
        console.print()


def _harmed(result: Result) -> bool:
    return any(anomaly.side == Side.RESOURCE for anomaly in result.anomalies)


def anomaly_line(result: Result, anomaly: Anomaly) -> str:
    """``fencing: stale-write-accepted by the resource, key k0, ops 3 9, overlap 1.250 ms``."""
    parts = [f"{result.checker}: {anomaly.kind}"]
    if anomaly.side is not None:
        parts[0] += f" by {SIDES[anomaly.side]}"
    if anomaly.key is not None:
        parts.append(f"key {anomaly.key}")
    if anomaly.ops:
        parts.append(f"ops {' '.join(map(str, anomaly.ops))}")
    if anomaly.overlap_ns is not None:
        parts.append(f"overlap {milliseconds(anomaly.overlap_ns)}")
    return safe(", ".join(parts))


def picture_lines(anomaly: Anomaly) -> list[str]:
    """The lines of an anomaly's picture, cleaned and masked."""
    return clean_lines(mask(anomaly.picture or "").rstrip("\n"))


def milliseconds(time_ns: int) -> str:
    """Nanoseconds as ms with three digits, exact to the microsecond without any float."""
    sign, whole = ("-" if time_ns < 0 else ""), abs(time_ns)
    return f"{sign}{whole // 1_000_000}.{whole % 1_000_000 // 1000:03d} ms"


def fault_line(fault: FaultWindow) -> str:
    """One fault: what, whom, when, and whether it bit and healed."""
    end = "the end" if fault.end_ns is None else milliseconds(fault.end_ns)
    aim = f" when {fault.when}" if fault.when else ""
    state = "bit" if fault.bit else "NO EVIDENCE that it bit"
    healed = "healed" if fault.healed else "NOT healed"
    says = f": {fault.says}" if fault.says else ""
    targets = " ".join(fault.targets) or "nobody"
    return safe(
        f"{fault.kind} on {targets}{aim}, {milliseconds(fault.start_ns)} to {end}, "
        f"{state}, {healed}{says}"
    )


def _faults(console: Console, faults: list[FaultWindow]) -> None:
    for fault in faults:
        style = "" if fault.bit and fault.healed else "yellow"
        console.print(Text(f"fault:   #{fault.id} {fault_line(fault)}", style=style))


def environment_line(report: RunReport) -> str:
    """Runtime, backend, library and versions in one line."""
    parts = [part for part in (report.runtime, report.backend, report.library) if part]
    parts += [f"{name} {version}" for name, version in sorted(report.versions.items())]
    return safe(", ".join(parts))


def facts_line(report: RunReport) -> str:
    """Number of events, duration, start, seed and scenario digest in one line."""
    parts = [f"{report.ops} events"]
    if report.torn:
        parts.append("last line of the history torn off")
    parts.append(f"{report.duration_ms / 1000:.1f} s")
    if report.started:
        parts.append(f"started {report.started}")
    if report.seed is not None:
        parts.append(f"seed {report.seed}")
    if report.scenario:
        parts.append(f"scenario {report.scenario}")
    return safe(", ".join(parts))


def _environment(console: Console, report: RunReport) -> None:
    line = environment_line(report)
    if line:
        console.print(Text(f"with:    {line}"))
    console.print(Text(f"run:     {facts_line(report)}"))
