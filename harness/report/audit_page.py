"""The record of an audit as one page that loads nothing: the content of the other formats.

    html = audit_page(record)

Traps: paths, comments and lines come from the audited files; the templates escape every string, and
the page's own policy lets nothing run.
"""

from __future__ import annotations

from checkers.audit.markdown import CLOSURE, VALIDATION, boundaries
from checkers.audit.model import Record, Status
from checkers.audit.verdict import NOT_READY, READY
from harness.report.templating import page

_TONES = {READY: "good", NOT_READY: "bad"}


def audit_page(record: Record) -> str:
    """The page; the same record gives the same bytes."""
    about = sum(file.status != "unknown" for file in record.files)
    return page(
        "audit.html.j2",
        styles=["page.css", "audit.css"],
        scripts=[],
        record=record,
        tone=_TONES.get(record.verdict, "doubt"),
        about=about,
        findings=record.findings,
        validation=VALIDATION,
        unknown=[n for n, row in record.dimensions.items() if row.status == Status.UNKNOWN],
        boundaries=boundaries(record),
        closure=CLOSURE,
    )
