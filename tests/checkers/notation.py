"""Histories in one line, for tests: ``A a 0-2; R a 7-8; A b 3-5 t=2; w a 4-5 t=1 fail``.

``F who call-return [t=token] [v=value] [fail]``.  F: A acquire, R release, N renew, S/X shared and
exclusive acquire, U unlock, w/r/c write, read, compare-and-set (``v=0>1``).  A return of ``*``
is an unknown outcome; ``fail`` is the refusal that observed the state (not-held, stale, mismatch).

``who`` is a hold (its id, and a process of its own that changes after an unknown outcome) or, with
``owners=True``, an owner without hold ids.
"""

from __future__ import annotations

from typing import Any

from harness.core.history import History, Interval, Op

NAMES = {
    "A": "acquire",
    "R": "release",
    "N": "renew",
    "S": "acquire",
    "X": "acquire",
    "U": "release",
    "w": "write",
    "r": "read",
    "c": "cas",
}
REFUSALS = {"A": "busy", "S": "busy", "X": "busy", "w": "stale", "c": "mismatch"}


def parse(text: str, *, owners: bool = False, key: str = "k") -> History:
    """The history that ``text`` describes; ties are put in line order of the operations."""
    events: list[tuple[int, int, int, dict[str, Any]]] = []
    lives: dict[str, int] = {}
    for number, part in enumerate(p for p in text.split(";") if p.strip()):
        letter, who, times, *rest = part.split()
        call, ret = times.split("-")
        fields = dict(word.split("=", 1) for word in rest if "=" in word)
        sent: Any = {} if owners else {"hold": who}
        if owners:
            sent["owner"] = who
        if "t" in fields:
            sent["token"] = int(fields["t"])
        if letter in "SX":
            sent["mode"] = "read" if letter == "S" else "write"
        got: Any = sent
        if letter in "rwc" and "v" in fields:
            if letter == "c":
                sent = [int(value) for value in fields["v"].split(">")]
            else:
                sent = None if letter == "r" else int(fields["v"])
            got = int(fields["v"]) if letter == "r" else sent
        life = lives.setdefault(who, 0)
        process = f"{who}{life or ''}"
        base = {"f": NAMES[letter], "process": process, "key": key}
        events.append((int(call), number, 0, {**base, "type": "invoke", "value": sent}))
        if ret == "*":
            lives[who] += 1
            continue
        kind, error = ("fail", REFUSALS.get(letter, "not-held")) if "fail" in rest else ("ok", None)
        events.append((int(ret), number, 1, {**base, "type": kind, "value": got, "error": error}))
    events.sort(key=lambda event: event[:3])
    return History([Op(i, at, **rest) for i, (at, _, _, rest) in enumerate(events)])


def intervals(text: str, **options: Any) -> list[Interval]:
    """The operations that ``text`` describes."""
    return parse(text, **options).intervals()
