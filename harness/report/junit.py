"""JUnit XML: one test suite per run, one test case for the claim and one per checker.

CI systems decide by failures, so the mapping is by *claim*: a run in which a violation was claimed
and found passes.  The case ``claim`` carries that; a case per checker shows what each one said,
and fails only where its verdict goes against the claim.

| outcome or verdict                                  | element   |
|-----------------------------------------------------|-----------|
| claim: violation, canary-passed, other-than-claimed | failure   |
| claim: unknown, harness-failure, interrupted        | error     |
| checker: violated, though not claimed to            | failure   |
| checker: violated, as claimed                       | passes, the finding is in system-out |
| checker: unknown                                    | skipped, the error is at the claim |
| checker: does not apply                             | skipped   |

Traps: XML 1.0 cannot hold control characters even as entities, so they are shown as escapes.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence

from harness.core.errors import EXIT_AS_CLAIMED
from harness.core.result import Result, Valid
from harness.report.document import RunReport, applies, masked, replay_line
from harness.report.escape import clean, mask, safe
from harness.report.text import anomaly_line, environment_line, picture_lines

_ERRORS = frozenset({"unknown", "harness-failure", "interrupted"})


def junit(reports: Sequence[RunReport]) -> bytes:
    """The XML document of one run or many."""
    root = ET.Element("testsuites", name="lockhavoc")
    for report in reports:
        root.append(_suite(masked(report)))
    for name in ("tests", "failures", "errors", "skipped"):
        total = sum(int(suite.get(name, "0")) for suite in root)
        if name != "skipped":
            root.set(name, str(total))
    root.set("time", _seconds(sum(report.duration_ms for report in reports)))
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _suite(report: RunReport) -> ET.Element:
    suite = ET.Element("testsuite", name=safe(report.name))
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(report):
        ET.SubElement(properties, "property", name=name, value=safe(value))
    cases = [_claim_case(report), *(_checker_case(report, result) for result in report.results)]
    suite.extend(cases)
    counts = {kind: sum(case.find(kind) is not None for case in cases) for kind in _KINDS}
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(counts["failure"]))
    suite.set("errors", str(counts["error"]))
    suite.set("skipped", str(counts["skipped"]))
    suite.set("time", _seconds(report.duration_ms))
    if report.started:
        # The schema wants no zone and no fraction; the run's own start is UTC.
        suite.set("timestamp", safe(report.started)[:19])
    suite.set("hostname", "localhost")
    return suite


_KINDS = ("failure", "error", "skipped")


def _properties(report: RunReport) -> Iterable[tuple[str, str]]:
    yield "seed", "" if report.seed is None else str(report.seed)
    yield "scenario", report.scenario
    yield "runtime", report.runtime
    yield "backend", report.backend
    yield "library", report.library
    yield "claim", report.claim.verdict
    yield "verdict", report.verdict
    yield "safety", report.valid.safety
    yield "liveness", report.valid.liveness
    yield "versions", environment_line(report)
    yield "run_dir", report.run_dir
    yield "replay", replay_line(report)


def _case(report: RunReport, name: str, duration_ms: int) -> ET.Element:
    return ET.Element(
        "testcase",
        classname=f"lockhavoc.{safe(report.name)}",
        name=safe(name),
        time=_seconds(duration_ms),
    )


def _claim_case(report: RunReport) -> ET.Element:
    case = _case(report, "claim", report.duration_ms)
    if report.exit_code == EXIT_AS_CLAIMED:
        return case
    kind = "error" if report.verdict in _ERRORS else "failure"
    child = ET.SubElement(case, kind, message=safe(report.says), type=report.verdict)
    lines = [f"claimed: {report.claim.verdict}", f"repeat: {replay_line(report)}"]
    lines += [f"harness: {failure}" for failure in report.failures]
    child.text = "\n".join(safe(line) for line in lines)
    return case


def _checker_case(report: RunReport, result: Result) -> ET.Element:
    case = _case(report, result.checker, 0)
    says = safe(result.says) or str(result.valid)
    if not applies(result):
        ET.SubElement(case, "skipped", message=f"does not apply: {says}")
    elif result.valid == Valid.UNKNOWN:
        ET.SubElement(case, "skipped", message=f"unknown: {says}")
        trace = result.stats.get("traceback")
        if trace:
            ET.SubElement(case, "system-err").text = _lines(str(trace))
    elif result.valid == Valid.FALSE:
        text = "\n".join(_findings(result))
        if report.exit_code == EXIT_AS_CLAIMED:
            ET.SubElement(case, "system-out").text = text
        else:
            ET.SubElement(case, "failure", message=says, type="violation").text = text
    return case


def _findings(result: Result) -> Iterable[str]:
    yield safe(result.says)
    for anomaly in result.anomalies:
        yield anomaly_line(result, anomaly)
        yield f"  {safe(anomaly.says)}"
        if anomaly.picture:
            yield from (f"  {line}" for line in picture_lines(anomaly))
        if anomaly.legal_if:
            yield f"  legal if: {safe(anomaly.legal_if)}"


def _lines(text: str) -> str:
    return "\n".join(clean(line) for line in mask(text).split("\n"))


def _seconds(duration_ms: int) -> str:
    return f"{duration_ms / 1000:.3f}"
