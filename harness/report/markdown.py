"""Job summary in Markdown, for ``$GITHUB_STEP_SUMMARY``, GitLab and chat.

One line per run in a table, then, for runs that did not go as claimed, what was found and the
command that repeats it.  Cut to what a CI step may write (GitHub: 1024 kB), always at a
whole run.

Traps: a lock key or an error may contain ``|``, ``<script>``, ``![x](http://...)`` or ``@name``: in
tables and prose each such character becomes an entity; pictures and commands go into code
blocks whose fence is longer than any run of backticks inside.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.core.errors import EXIT_AS_CLAIMED
from harness.core.result import Valid
from harness.report.document import RunReport, replay_line
from harness.report.escape import markdown as md
from harness.report.escape import safe
from harness.report.text import HEADLINES, anomaly_line, fault_line, picture_lines

BYTES_MAX = 1_000_000  # GitHub refuses more than 1024 kB a step; leave room for others
_ANOMALIES_SHOWN = 5
_MARKS = {0: "✅", 1: "❌", 2: "❔"}


def summary(reports: Sequence[RunReport], *, bytes_max: int = BYTES_MAX) -> str:
    """The summary of one run or many, at most ``bytes_max`` bytes of UTF-8."""
    lines = [
        "### lockhavoc",
        "",
        "| run | claim | outcome | safety | liveness | says |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_row(report) for report in reports]
    parts = ["\n".join(lines) + "\n"]
    parts += [_details(report) for report in reports if report.exit_code != EXIT_AS_CLAIMED]
    text, dropped = "", 0
    for part in parts:
        if len((text + part).encode()) > bytes_max - 200:
            dropped += 1
        else:
            text += part
    if dropped:
        text += f"\n{dropped} parts left out, they are too long; see the stored results.\n"
    return text


def _row(report: RunReport) -> str:
    mark = _MARKS.get(report.exit_code, "💥")
    cells = [
        f"{mark} {md(report.name)}",
        md(report.claim.verdict),
        md(HEADLINES[report.verdict].lower()),
        md(_word(report.valid.safety)),
        md(_word(report.valid.liveness)),
        md(report.says),
    ]
    return f"| {' | '.join(cells)} |"


def _word(valid: Valid) -> str:
    return {Valid.TRUE: "ok", Valid.UNKNOWN: "unknown", Valid.FALSE: "violated"}[valid]


def _details(report: RunReport) -> str:
    lines = ["", f"#### {md(report.name)}", "", md(report.says), ""]
    found = [(result, anomaly) for result in report.results for anomaly in result.anomalies]
    for result, anomaly in found[:_ANOMALIES_SHOWN]:
        lines += [f"- **{md(anomaly_line(result, anomaly))}**  ", f"  {md(anomaly.says)}", ""]
        if anomaly.picture:
            lines += [_code("\n".join(picture_lines(anomaly))), ""]
        if anomaly.legal_if:
            lines += [f"  legal if: {md(anomaly.legal_if)}", ""]
    if len(found) > _ANOMALIES_SHOWN:
        lines += [f"and {len(found) - _ANOMALIES_SHOWN} more in results&#46;json", ""]
    lines += [f"- fault {md(fault_line(fault))}" for fault in report.faults]
    lines += [f"- harness: {md(failure)}" for failure in report.failures]
    if report.replay:
        lines += ["", _code(safe(replay_line(report)))]
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
