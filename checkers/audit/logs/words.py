"""What a line says happened to which lock: words of common libraries, and fields.

    event = Reader(mapping).event(path, number, line)
    # Event(ns, kind="acquired", lock="orders", holder="w1", ttl_ns=None, place...)

Known: client-go's and controller-runtime's leader election, python-redis-lock, ShedLock, Redisson,
Curator, Rails advisory locks, and whatever says "lock X acquired by Y" or has fields of such names.

Traps: a line that says that somebody *failed* to acquire or release is not the event that it names,
so refusals and losses are looked for first.  Without a holder in it a line is its writer's: the
process in syslog, else the file.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from checkers.audit.logs.lines import of_json, of_logfmt, pairs, parse_time, source
from checkers.audit.logs.mapping import Mapping

_ABOUT = (
    "lock", "lease", "leader", "leading", "mutex", "semaphore", "acqui", "releas", "renew",
    "ownership", "session expired",
)  # fmt: skip
_STARTS = re.compile(
    r"""\d{4}-\d\d-\d\d[T ]\d\d:|[\[({<"\s]|$|[A-Z][a-z]{2}[ ][ \d]\d[ ]\d|[IWEF]\d{4}[ ]
    |[\w.@]{1,16}=|Traceback|Caused[ ]by""",
    re.X,
)
_NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))
_SHAPES_MAX = 50_000
_LOST = re.compile(
    r"\blost\b|\bexpired\b|no longer (?:own|hold|the leader|leader)|not owned|NotOwned|LockLost"
    r"|stopped leading|leaderelection lost|lease (?:is )?(?:over|ended|gone)"
    r"|(?:failed|unable|could not|cannot) to (?:renew|extend|refresh)|renew(?:al)? failed",
    re.I,
)
_REFUSED = re.compile(
    r"(?:fail\w*|unable|could ?n.t|could not|cannot|did not|not able) (?:to )?"
    r"(?:acquire|obtain|get|lock|take)|not acquired|already (?:locked|held|taken)|\bbusy\b"
    r"|it.s locked|LockTimeout"
    r"|held by (?:another|other)|lock contention|timed? ?out (?:waiting )?(?:for|acquiring)"
    r"|retrying|attempt(?:ing)? to acquire|trying to acquire|acquiring|waiting for",
    re.I,
)
_RELEASED = re.compile(r"\breleas(?:ed|ing|e)\b|\bunlock(?:ed|ing)?\b|stepp(?:ed|ing) down", re.I)
_RENEWED = re.compile(
    r"\brenew(?:ed|ing|al)?\b|\bextended\b|\brefresh(?:ed|ing)\b|\breacquired\b|heartbeat"
    r"|kept alive",
    re.I,
)
_ACQUIRED = re.compile(
    r"\bacquired\b|\bobtained\b|\bgranted\b|\bgot (?:the )?(?:lock|lease)|\bgot lock\b"
    r"|(?:^|\s)locked '"
    r"|\block taken\b|\btook (?:the )?lock|became (?:the )?leader|started leading|\bis locked by\b"
    r"|now (?:the )?leader",
    re.I,
)
_WORK = re.compile(
    r"\bwr(?:ote|iting|itten|ite)\b|\bcommit(?:ted|ting)?\b|\bprocess(?:ed|ing)\b|\bwork(?:ing)?\b"
    r"|\bupdat(?:ed|ing)\b|\bsaved\b|\bsent\b|\bcharged\b",
    re.I,
)
_KINDS = (
    ("lost", _LOST), ("refused", _REFUSED), ("released", _RELEASED), ("acquired", _ACQUIRED),
    ("renewed", _RENEWED), ("work", _WORK),
)  # fmt: skip
_FAILED = re.compile(r"\b(?:fail\w*|error|unable|could not|cannot)\b", re.I)
_SAME = {
    "acquire": "acquired", "acquired": "acquired", "lock": "acquired", "locked": "acquired",
    "grant": "acquired", "granted": "acquired", "obtained": "acquired", "release": "released",
    "released": "released", "unlock": "released", "unlocked": "released", "renew": "renewed",
    "renewed": "renewed", "extend": "renewed", "extended": "renewed", "heartbeat": "renewed",
    "lost": "lost", "expire": "lost", "expired": "lost", "busy": "refused", "refused": "refused",
    "waiting": "refused", "denied": "refused", "work": "work", "write": "work", "commit": "work",
}  # fmt: skip
_LOCK_NAMES = ("lock", "lock_name", "lockname", "lock_key", "lockkey", "lock_id", "resource",
               "mutex", "lease_name", "key", "name")  # fmt: skip
_HOLDER_NAMES = ("holder", "owner", "holder_id", "owner_id", "holderidentity", "identity", "client",
                 "client_id", "worker", "worker_id", "pod", "instance", "node", "process", "by",
                 "thread", "hostname", "host")  # fmt: skip
_KIND_NAMES = ("event", "action", "op", "operation")
_TEXT_NAMES = ("msg", "message", "log", "text")
_TTL_NAMES = {
    "ttl_ms": 1_000_000, "lease_ms": 1_000_000, "ttlms": 1_000_000, "expires_in_ms": 1_000_000,
    "ttl_s": 1_000_000_000, "lease_s": 1_000_000_000, "ttl": 1_000_000_000,
    "lease_duration_seconds": 1_000_000_000, "expire": 1_000_000_000, "lease": 1_000_000_000,
}  # fmt: skip
_NAMED = re.compile(
    r"""(?:Lock\(|\b(?:dead|leader )?(?:locks?|leases?|mutex|leadership|advisory lock)\b
        [ ]*(?:named|name|for|of|on|key)?[ ]*[=:(]?[ ]*)['"<\[]?
        (?!(?:acquired|released|renewed|expired|lost|is|was|by|for|on|has|will|with|not|to|the|
        taken|failed|after|before|in|and|held|granted|extended|busy|timeout|ttl|holder|owner)\b)
        (?P<lock>[\w][\w:./\-{}#]*)""",
    re.X | re.I,
)
_SAYS_LOCK = re.compile(r"\b(?:locks?|leases?|leader\w*|mutex|leading)\b", re.I)
_VERB_FIRST = re.compile(r"(?:[Ll]ocked|[Uu]nlocked|executing) '(?P<lock>[^']+)'")
_BY = re.compile(
    r"\b(?:by|holder|owner|worker|client|pod|instance)[ =:]+['\"<\[]?(?P<holder>[\w][\w:.\-/#@]*)"
)
_BECAME = re.compile(r"^(?P<holder>[\w.\-]+) (?:became|is now) (?:the )?leader")
_IN_TEXT_TTL = re.compile(r"\b(?:ttl|lease)[ =:]+(\d+(?:\.\d+)?) ?(ms|s)\b", re.I)


class Event(msgspec.Struct, frozen=True, gc=False):
    """Something that happened to a lock.  Times in ns; ``ttl_ns`` None where nobody says it."""

    ns: int
    kind: str
    lock: str
    holder: str
    ttl_ns: int | None
    path: str
    line: int


class Reader:
    """Turns lines into events; counts lines that are none of a log."""

    def __init__(self, mapping: Mapping) -> None:
        self.mapping = mapping
        fields = mapping.fields
        self.locks = _ranks((fields["lock"],) if "lock" in fields else _LOCK_NAMES)
        self.holders = _ranks((fields["holder"],) if "holder" in fields else _HOLDER_NAMES)
        self.texts = (fields["message"],) if "message" in fields else _TEXT_NAMES
        self.time = fields.get("time", "")
        self.own = mapping.events
        self.shapes: dict[str, str] = {}
        self.unparsed: dict[str, tuple[int, int]] = {}  # path -> (how many, the first line)

    def event(self, path: str, number: int, line: str | None, low: str) -> Event | None:
        """The event of a line, or None; a line that is none of a log is counted.

        low: the line in small letters.
        """
        about = any(map(low.__contains__, _ABOUT)) or any(p.search(low) for _, p in self.own)
        if line is None or (not about and not _STARTS.match(line)):
            self._bad(path, number)
            return None
        if not about:
            if line[:1] == "{" and line.rstrip()[-1:] != "}":
                self._bad(path, number)
            return None
        if line[:1] == "{":
            parsed = of_json(line, self.time)
        else:
            stamped = parse_time(line)
            if stamped is not None:
                return self._of_text(path, number, *stamped)
            parsed = of_logfmt(line, self.time) if "=" in line else None
            if parsed is None and _STARTS.match(line):
                return None  # goes on from the line before
        if parsed is None:
            self._bad(path, number)
            return None
        ns, fields = parsed
        text = next((str(fields[n]) for n in self.texts if n in fields), "")
        return self._made(path, number, ns, fields, text, "")

    def _of_text(self, path: str, number: int, ns: int, rest: str, stamp: str) -> Event | None:
        who = ""
        if stamp in ("bsd", "new"):
            who, rest = source(rest, stamp)
        found = pairs(rest) if "=" in rest else {}
        return self._made(path, number, ns, found, rest.strip(" -:\r"), who)

    def _bad(self, path: str, number: int) -> None:
        count, first = self.unparsed.get(path, (0, number))
        self.unparsed[path] = (count + 1, first)

    def _made(
        self, path: str, number: int, ns: int, fields: dict[str, Any], text: str, who: str
    ) -> Event | None:
        kind = self._kind(fields, text)
        if not kind:
            return None
        lower = {k.lower(): v for k, v in fields.items()} if fields else fields
        lock = _first(lower, self.locks)
        if not lock:
            found = _VERB_FIRST.search(text) or _NAMED.search(text)
            lock = found["lock"].rstrip(".:,") if found else ""
        if not lock and (kind == "work" or not _SAYS_LOCK.search(text)):
            return None
        holder = _first(lower, self.holders)
        if not holder:
            found = _BY.search(text) or _BECAME.match(text)
            holder = found["holder"].rstrip(".:,") if found else who or path
        return Event(ns, kind, lock or "(unnamed)", holder, self._ttl(lower, text), path, number)

    def _kind(self, fields: dict[str, Any], text: str) -> str:
        for kind, expression in self.own:
            if expression.search(text) or any(
                expression.search(str(fields[n])) for n in _KIND_NAMES if n in fields
            ):
                return kind
        for name in _KIND_NAMES:
            if name in fields:
                word = str(fields[name]).lower().replace("-", "_").replace(".", "_")
                kind = _SAME.get(word) or _SAME.get(word.removeprefix("lock_"), "")
                if kind:
                    return kind
                text = text or word.replace("_", " ")
        shape = text.translate(_NO_DIGITS)  # of the same words, whatever the numbers
        known = self.shapes.get(shape)
        if known is None:
            if len(self.shapes) >= _SHAPES_MAX:
                self.shapes.clear()
            known = self.shapes[shape] = _by_words(text)
        return known

    def _ttl(self, fields: dict[str, Any], text: str) -> int | None:
        named = self.mapping.fields.get("ttl_ms")
        names = {named.lower(): 1_000_000} if named else _TTL_NAMES
        for name in names.keys() & fields.keys():
            factor = names[name]
            value = fields.get(name)
            if value is not None:
                try:
                    return round(float(str(value).removesuffix("s")) * factor)
                except ValueError:
                    continue
        found = _IN_TEXT_TTL.search(text) if "ttl" in text or "lease" in text else None
        if found:
            unit = 1_000_000 if found[2].lower() == "ms" else 1_000_000_000
            return round(float(found[1]) * unit)
        return self.mapping.ttl_ns


def _ranks(names: tuple[str, ...]) -> dict[str, int]:
    return {name.lower(): rank for rank, name in enumerate(names)}


def _by_words(text: str) -> str:
    for kind, expression in _KINDS:
        if expression.search(text):
            if kind in ("released", "renewed") and _FAILED.search(text):
                return ""  # somebody tried; what came of it is not said
            return kind
    return ""


def _first(fields: dict[str, Any], ranks: dict[str, int]) -> str:
    """The value of the field that comes first among ``ranks``, "" if there is none."""
    known = [name for name in ranks.keys() & fields.keys() if fields[name] not in (None, "")]
    return str(fields[min(known, key=ranks.__getitem__)]) if known else ""
