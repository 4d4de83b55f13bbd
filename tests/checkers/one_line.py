"""Small histories in one line each: ``A a 0-2; R a 5-8; A b 1-*; R b 9-10 fail t=3``.

    F who call-return [fail] [t=token] [v=value | v=from>to]

F: A acquire, R release, N renew, S / X shared / exclusive acquire, U unlock, w / r / c write /
read / compare-and-set.  ``*``: no completion.  ``fail``: refused with the observation of its kind.
Times are ns.  With ``holds`` each name is one hold (and its owner); else an owner alone.
"""

from __future__ import annotations

import re
from typing import Any

from harness.core.history import Header, History, Op

_F = {
    "A": "acquire", "R": "release", "N": "renew", "S": "acquire", "X": "acquire",
    "U": "release", "w": "write", "r": "read", "c": "cas",
}  # fmt: skip
_REFUSED = {"A": "busy", "S": "busy", "X": "busy", "w": "stale", "c": "mismatch"}
_PART = re.compile(
    r"(?P<f>\w) (?P<who>\w+) (?P<call>\d+)-(?P<ret>\d+|\*)(?P<fail> fail)?"
    r"(?: t=(?P<token>\d+))?(?: v=(?P<value>[\d>]+))?(?P<late> fail)?"
)


def history(text: str, *, holds: bool = True, key: str | None = None, **header: Any) -> History:
    """The history of a line of notation; at equal times calls come before returns."""
    events: list[tuple[int, int, int, dict[str, Any]]] = []
    names: dict[str, int] = {}
    for place, part in enumerate(text.split(";")):
        match = _PART.fullmatch(part.strip())
        assert match is not None, part
        f, who = match["f"], match["who"]
        common = {
            "process": names.setdefault(who, len(names)), "f": _F[f], "key": key,
        }  # fmt: skip
        asked, answered = _values(match, holds=holds)
        call = int(match["call"])
        events.append((call, 0, place, {**common, "type": "invoke", "value": asked}))
        if match["ret"] == "*":
            continue
        ok = not (match["fail"] or match["late"])
        error = None if ok else _REFUSED.get(f, "not-held")
        done = {**common, "type": "ok" if ok else "fail", "error": error, "value": answered}
        events.append((int(match["ret"]), 1, place, done))
    events.sort(key=lambda event: event[:3])
    ops = [Op(index=i, time=event[0], **event[3]) for i, event in enumerate(events)]
    return History(ops, Header(**header))


def _values(match: re.Match[str], *, holds: bool) -> tuple[Any, Any]:
    f, who = match["f"], match["who"]
    value = match["value"]
    if f == "r":
        return None, None if value is None else int(value)
    if f == "c":
        pair = [int(part) for part in value.split(">")]
        return pair, pair
    if f == "w" and value is not None:
        return int(value), int(value)
    fields: dict[str, Any] = {"owner": who}
    if holds and f != "w":
        fields["hold"] = who
    if f in "SX":
        fields["mode"] = "read" if f == "S" else "write"
    if match["token"] is None:
        return fields, fields
    token = {**fields, "token": int(match["token"])}
    return (fields if f == "A" else token), token
