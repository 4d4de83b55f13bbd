"""badge.svg: a verdict of 20 pixels' height, for a README or a dashboard.

    badge("as-claimed")

The words are those of the reports, never a green "passing": a run that proved nothing says so.
Widths come from a table of letters, since a picture cannot measure its own text.
"""

from __future__ import annotations

from harness.report.document import Outcome
from harness.report.templating import render

_WORDS: dict[Outcome, tuple[str, str]] = {
    "as-claimed": ("as claimed", "#116329"),
    "violation": ("violation", "#b3131f"),
    "other-than-claimed": ("other violation", "#b3131f"),
    "canary-passed": ("canary passed", "#b3131f"),
    "unknown": ("unknown", "#7a4b00"),
    "harness-failure": ("harness failure", "#6639ba"),
    "interrupted": ("interrupted", "#555e69"),
}
_NARROW, _WIDE, _LETTER, _MARGIN = set("filjtI1., "), set("mwMW"), 6.6, 12


def badge(outcome: Outcome, *, name: str = "lock") -> str:
    """The picture of an outcome as SVG text."""
    word, colour = _WORDS[outcome]
    left, right = width(name), width(word)
    return render(
        "badge.svg.j2", name=name, word=word, colour=colour, left=left, right=right,
        whole=left + right,
    )  # fmt: skip


def width(text: str) -> int:
    """Pixels of a text of 11 px, roughly, with a margin on both sides."""
    letters = sum(
        _LETTER * (0.6 if char in _NARROW else 1.4 if char in _WIDE else 1.0) for char in text
    )
    return round(letters) + _MARGIN
