"""From texts in other languages than Python to facts; files without a word about locks cost a look.

    facts, refused = code_facts({"worker.go": text}, {"LOCK_TTL": "30"})

Traps: a file that is not about locks is not parsed, so nobody learns whether its syntax is right.
A file of constants is parsed where another file of its language is about locks.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from checkers.audit.languages.grammars import MissingGrammar, language_of, parse
from checkers.audit.languages.hand_made import HandMade
from checkers.audit.languages.libraries import LibraryLocks
from checkers.audit.languages.scripts import script_facts
from checkers.audit.languages.sql import sql_facts
from checkers.audit.languages.tree import Source
from checkers.audit.languages.values import Names
from checkers.audit.model import Fact
from harness.core.limits import AUDIT_CONSTANTS_BYTES_MAX

# Words without which nothing in these files can become a fact.
_ABOUT = re.compile(
    r"redlock|redsync|redislock|redisson|curator|shedlock|/concurrency\"|zookeeper/zk\"|advisory"
    r"|redis-semaphore|redis-?_?mutex|springframework\.integration|setnx|setargs|ifabsent"
    r"|unless_exist|lock_manager|dlm\b|lock_client|\bnx\b",
    re.I,
)
_LOCK = re.compile(r"(?<![bc])lock|mutex|lease|leader|semaphore", re.I)
_CONSTANT = re.compile(r"ttl|expir|lease|lock|timeout|interval|duration|seconds", re.I)


def code_facts(
    texts: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[list[Fact], dict[str, str]]:
    """(facts, why a file could not be read) for all texts whose language is known here."""
    with _without_collector():
        return _read(texts, environment)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Trees are large and live until the end: to look through them for garbage is for nothing."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _read(
    texts: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[list[Fact], dict[str, str]]:
    found: list[Fact] = []
    refused: dict[str, str] = {}
    sources: dict[str, Source] = {}
    about: list[str] = []
    maybe: list[str] = []
    for path, text in texts.items():
        language = language_of(path)
        try:
            if language == "sql":
                found += sql_facts(path, text)
            elif language == "lua":
                found += _script(path, text, refused)
            elif _ABOUT.search(text) and _LOCK.search(text):
                about.append(path)
                sources[path] = parse(language, path, text)
            elif len(text) <= AUDIT_CONSTANTS_BYTES_MAX and _CONSTANT.search(text):
                maybe.append(path)
        except MissingGrammar as error:
            refused[path] = str(error)
        except RecursionError:
            refused[path] = "nested too deeply to be followed"
    spoken = {_family(path) for path in sources}
    for path in maybe:
        if _family(path) in spoken:
            # Nested too deeply for a file of constants, so it is none.
            with suppress(RecursionError):
                sources[path] = parse(language_of(path), path, texts[path])
    for path in [p for p, s in sources.items() if s.broken]:
        del sources[path]
        if path in about:
            refused[path] = "its syntax is not understood, so nothing is said about it"
    names = Names(sources, environment)
    for path in about:
        if path not in sources:
            continue
        try:
            own = [*LibraryLocks(sources[path], names).facts()]
            found += [*own, *HandMade(sources[path], names).facts()]
        except RecursionError:
            refused[path] = "nested too deeply to be followed"
    return found, refused


def _script(path: str, text: str, refused: dict[str, str]) -> list[Fact]:
    if "redis." not in text:
        return []
    facts = script_facts(path, text)
    if facts is None:
        refused[path] = "its syntax is not understood, so nothing is said about it"
    return facts or []


def _family(path: str) -> str:
    language = language_of(path)
    return "javascript" if language in ("typescript", "tsx") else language
