"""A verification for people and for CI: text, Markdown, JUnit.

    print(text(document))
    Path("verify.md").write_text(markdown(document))

JUnit has one suite per library and one case per cell: worse fails, unknown is an error, what
cannot be done here is skipped.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence

from harness.report.escape import safe
from harness.verify.compare import Comparison
from harness.verify.document import Cell, Document, Verdict

WORDS: Mapping[Verdict, str] = {
    "worse": "WORSE than claimed",
    "as-claimed": "as claimed",
    "better": "better than claimed",
    "unknown": "unknown",
    "not-run": "cannot be done here",
}
DIMENSION_WORDS = {
    "identity": "identity (only the owner releases or renews)",
    "lease": "lease (one holder, who knows when it is none)",
    "fencing": "fencing (late writes are refused)",
    "release_retry": "release and retry (lost replies, slow links)",
    "recovery": "recovery (the next one gets in)",
}
_SEEN = {"held": "held", "broken": "BROKE", "unknown": "?", "not-asked": "-"}


def text(document: Document) -> str:
    """The verdict, the scorecard and the cells, for a terminal."""
    return "\n".join(_text(document)) + "\n"


def _text(document: Document) -> Iterator[str]:
    yield f"{document.library}: {summary(document)}"
    yield safe(f"  {document.about}")
    yield (
        f"  lease: {document.lease} · fencing: {document.fencing or 'none'} · "
        f"tells of a loss: {document.loss_signal}"
    )
    yield ""
    yield from _columns(_cell_rows(document.cells), indent="  ")
    for cell in document.cells:
        if cell.verdict in ("worse", "unknown", "not-run"):
            yield ""
            yield f"{WORDS[cell.verdict]}: {cell.situation} on {cell.backend}"
            yield safe(f"  {cell.says}")
            yield from (safe(f"  {one}") for one in cell.found if cell.verdict == "worse")
            if cell.replay:
                yield f"  again: {safe(cell.replay)}"
    yield ""
    yield from _columns(_score_rows(document), indent="  ")


def summary(document: Document) -> str:
    """One line over all cells."""
    counts = [(document.count(verdict), words) for verdict, words in WORDS.items()]
    said = ", ".join(f"{count} {words}" for count, words in counts if count)
    cut = "; interrupted" if document.interrupted else ""
    many = "cell" if len(document.cells) == 1 else "cells"
    return f"{len(document.cells)} {many}: {said or 'none'}{cut}"


def _cell_rows(cells: Sequence[Cell]) -> list[tuple[str, ...]]:
    head = ("situation", "backend", "verdict", "grant", "belief", "write", "answer", "progress",
            "lag ms", "awake", "again ms")  # fmt: skip
    rows: list[tuple[str, ...]] = [head]
    for cell in cells:
        seen = [_SEEN[cell.seen[n]] + _mark(cell, n) if n in cell.seen else "" for n in head[3:8]]
        rows.append(
            (
                cell.situation, cell.backend, WORDS[cell.verdict], *seen,
                _number(cell.loss.lag_ms if cell.loss.losses else None),
                _number(cell.loss.awake_lag_ms if cell.loss.losses else None),
                _number(cell.recovery_ms),
            )
        )  # fmt: skip
    return rows


def _mark(cell: Cell, name: str) -> str:
    """A star where nothing was promised."""
    return "" if cell.claims.get(name) == "holds" or cell.seen[name] == "not-asked" else "*"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"


def _score_rows(document: Document) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("dimension", "", "promises kept", "broken", "unknown", "breaks without a promise")
    ]
    for name, score in document.scorecard.items():
        status = {"ok": "ok", "gap": "GAP", "unknown": "unknown"}[score.status]
        rows.append(
            (
                DIMENSION_WORDS[name], status, str(score.kept), str(score.broken),
                str(score.unknown), str(score.unpromised),
            )
        )  # fmt: skip
    return rows


def _columns(rows: Sequence[tuple[str, ...]], *, indent: str) -> Iterator[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield (indent + "  ".join(cells)).rstrip()


def listing(cells: Sequence[Cell]) -> str:
    """What would run, and what is not promised there."""
    rows: list[tuple[str, ...]] = [("situation", "backend", "workload", "what happens", "promised")]
    for cell in cells:
        but = [name if stance == "breaks" else f"({name})"
               for name, stance in cell.claims.items() if stance != "holds"]  # fmt: skip
        promised = f"all but {', '.join(but)}" if but else "all"
        rows.append((cell.situation, cell.backend, cell.workload, cell.about, promised))
    return "\n".join(_columns(rows, indent="")) + "\n"


LEGEND = (
    "`*`: nothing is promised here. lag: longest belief in a lock that was gone (awake: without "
    "the time a paused holder slept). again: from the end of the fault to the next grant."
)


def markdown(document: Document) -> str:
    """The page of a library."""
    return "\n".join(_markdown(document)) + "\n"


def _markdown(document: Document) -> Iterator[str]:
    yield f"# {document.library}: what it promises, keeps and breaks\n"
    yield f"{summary(document)}.\n"
    yield f"- library: {_md(document.about)}"
    yield (
        f"- lease: {document.lease}; fencing: {_md(document.fencing or 'none')}; tells of a "
        f"loss: {document.loss_signal}"
    )
    versions = ", ".join(f"{name} {value}" for name, value in sorted(document.versions.items()))
    yield f"- versions: {_md(versions or 'none known')}"
    yield f"- {document.started}, seed {document.seed}, `{document.command}`\n"
    yield "## Scorecard\n"
    yield from _md_table(_score_rows(document))
    yield "\n## Cells\n"
    yield from _md_table(_cell_rows(document.cells))
    yield f"\n{LEGEND}\n"
    for cell in document.cells:
        yield f"### {cell.situation} on {cell.backend}: {WORDS[cell.verdict]}\n"
        yield f"{_md(cell.about[:1].upper() + cell.about[1:])}. {_md(cell.says)}.\n"
        yield f"- claimed, because {_md(cell.why)}"
        told = ", ".join(f"{why} {count}" for why, count in cell.loss.told_by.items())
        if told:
            yield f"- beliefs in a lock that was gone ended by: {_md(told)}"
        yield from (f"- {_md(one)}" for one in cell.found)
        if cell.replay:
            yield f"- again: `{cell.replay}`" + (f" (run `{cell.run_dir}`)" if cell.run_dir else "")
        yield ""


def _md(words: str) -> str:
    line = " ".join(safe(words).split())
    return line.replace("|", "\\|").replace("<", "&lt;").rstrip(".")


def _md_table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    head, *body = rows
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in body:
        yield f"| {' | '.join(_md(cell).replace('*', chr(92) + '*') for cell in row)} |"


def junit(document: Document) -> bytes:
    """One suite, a case per cell."""
    suite = ET.Element("testsuite", name=f"lockhavoc verify {safe(document.library)}")
    counts = {"failure": 0, "error": 0, "skipped": 0}
    for cell in document.cells:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=f"lockhavoc.verify.{safe(document.library)}.{safe(cell.backend)}",
            name=safe(cell.situation),
            time=f"{cell.duration_ms / 1000:.3f}",
        )
        kind = {"worse": "failure", "unknown": "error", "not-run": "skipped"}.get(cell.verdict)
        lines = [cell.why and f"claimed, because {cell.why}", *cell.found,
                 cell.replay and f"again: {cell.replay}"]  # fmt: skip
        said = "\n".join(safe(line) for line in lines if line)
        if kind is None:
            ET.SubElement(case, "system-out").text = f"{safe(cell.says)}\n{said}"
            continue
        counts[kind] += 1
        child = ET.SubElement(case, kind, message=safe(cell.says), type=cell.verdict)
        child.text = said
    root = ET.Element("testsuites", name="lockhavoc")
    for element in (suite, root):
        element.set("tests", str(len(document.cells)))
        element.set("failures", str(counts["failure"]))
        element.set("errors", str(counts["error"]))
        element.set("time", f"{document.duration_ms / 1000:.3f}")
    suite.set("skipped", str(counts["skipped"]))
    root.append(suite)
    ET.indent(root)
    encoded: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return encoded + b"\n"


def comparison_text(found: Comparison) -> str:
    """What changed, worst first; cells that are the same are counted."""
    lines = [f"before: {safe(found.before)}", f"after:  {safe(found.after)}", ""]
    order = ("regression", "weaker", "unknown", "still-worse", "fixed", "stronger")
    for kind in order:
        for change in found.changes:
            if change.kind == kind:
                lines.append(
                    f"{kind.upper() if kind == 'regression' else kind}: {change.situation} on "
                    f"{change.backend}: {change.before} -> {change.after}"
                )
                lines += [safe(f"  {change.says}")] if change.says else []
                lines += [f"  again: {safe(change.replay)}"] if change.replay else []
    lines += [f"slower: {one}" for one in found.slower]
    same = sum(change.kind == "same" for change in found.changes)
    many = "regression" if len(found.regressions) == 1 else "regressions"
    lines.append(f"{len(found.regressions)} {many}, {same} of {len(found.changes)} unchanged")
    return "\n".join(lines) + "\n"
