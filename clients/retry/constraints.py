"""Reads the sentences in ``constraints``: what is not understood is said, never dropped.

    parse(("Must not exceed 5 retries", "be nice")).max_retries      # 5
    parse(("Must not exceed 5 retries", "be nice")).unknown          # ("be nice",)

Trap: "never escalate" and "retry forever" are understood, and loosen no budget.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

WORDS = "zero one two three four five six seven eight nine ten"
NUMBERS = {word: Decimal(n) for n, word in enumerate(WORDS.split(" "))}
UNITS_MS = {"ms": 1, "millisecond": 1, "s": 1000, "sec": 1000, "second": 1000}
UNITS_MS |= {"m": 60_000, "min": 60_000, "minute": 60_000, "h": 3_600_000, "hour": 3_600_000}

_N = r"(?P<n>\d+(?:\.\d+)?|" + "|".join(NUMBERS) + ")"
_T = _N + r"\s*(?P<unit>ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)"
_MUST = r"(?:it |the client |you )?(?:must |should |shall )?"
_LESS = r"(?:not exceed|never exceed|be at most|at most|no more than|not be more than|up to)"
_LEAST = r"(?:be )?(?:at least|no less than|not be less than)"
_BETWEEN = r"(?: between (?:retries|attempts))?"
_PAUSE = r"(?:delay|wait|back-?off|pause)"
_DELAY = rf"(?:the )?(?:retry |back-?off )?{_PAUSE}{_BETWEEN}"
_IS = r"(?: is| of|:|=)? ?"
_KEEP = r"(?:preserve|keep|respect|maintain|honou?r)"
_FOREVER = r"(?:retry forever|never give up|retry indefinitely|never stop retrying)"
_FORMS = (
    (
        "retries",
        rf"{_MUST}(?:retry |make )?{_LESS} (?:a total of )?{_N} (?:retries|retry|times)",
    ),
    ("retries", rf"max(?:imum)?(?: number)?(?: of)? retries{_IS}{_N}"),
    ("fifo", rf"{_MUST}{_KEEP} (?:the )?(?:strict )?fifo(?: order(?:ing)?)?"),
    ("oncall", rf"{_MUST}escalate(?: to (?:the )?on-?call)? after {_T}(?: of waiting)?"),
    ("longest", rf"{_DELAY} {_MUST}{_LESS} {_T}"),
    ("longest", rf"max(?:imum)?(?: retry| back-?off)? {_PAUSE}{_IS}{_T}"),
    ("longest", rf"{_MUST}(?:not (?:wait|delay) more than|wait at most) {_T}{_BETWEEN}"),
    ("shortest", rf"{_DELAY} {_MUST}{_LEAST} {_T}"),
    ("shortest", rf"min(?:imum)?(?: retry| back-?off)? {_PAUSE}{_IS}{_T}"),
    ("shortest", rf"{_MUST}wait at least {_T}{_BETWEEN}"),
    ("no_escalation", rf"{_MUST}(?:never|not|do not|don't) escalate"),
    ("forever", rf"{_MUST}{_FOREVER}"),
)
_COMPILED = tuple((name, re.compile(form + r"[.!]?", re.IGNORECASE)) for name, form in _FORMS)


@dataclass(frozen=True, slots=True)
class Constraints:
    """What was understood; of two that say the same, the stricter one.  Times in ms."""

    max_retries: int | None = None
    fifo: bool = False
    escalate_after_ms: Decimal | None = None
    longest_ms: Decimal | None = None
    shortest_ms: Decimal | None = None
    never_escalate: bool = False
    retry_forever: bool = False
    unknown: tuple[str, ...] = ()


NOTHING = Constraints()


@lru_cache(maxsize=256)
def parse(sentences: tuple[str, ...]) -> Constraints:
    """Reads all sentences (any case, with or without a full stop)."""
    retries: list[Decimal] = []
    times: dict[str, list[Decimal]] = {"oncall": [], "longest": [], "shortest": []}
    flags: set[str] = set()
    unknown = []
    for sentence in sentences:
        text = " ".join(sentence.split())
        for name, form in _COMPILED:
            found = form.fullmatch(text)
            if found is None:
                continue
            if name in times:
                times[name].append(_number(found["n"]) * _unit_ms(found["unit"]))
            elif name == "retries":
                retries.append(_number(found["n"]))
            else:
                flags.add(name)
            break
        else:
            unknown.append(sentence)
    return Constraints(
        max_retries=int(min(retries)) if retries else None,
        fifo="fifo" in flags,
        escalate_after_ms=min(times["oncall"], default=None),
        longest_ms=min(times["longest"], default=None),
        shortest_ms=max(times["shortest"], default=None),
        never_escalate="no_escalation" in flags,
        retry_forever="forever" in flags,
        unknown=tuple(unknown),
    )


def _number(word: str) -> Decimal:
    return NUMBERS.get(word.lower()) or Decimal(word if word[0].isdigit() else 0)


def _unit_ms(word: str) -> int:
    word = word.lower()
    return UNITS_MS.get(word) or UNITS_MS[word.rstrip("s")]
