"""Sorted sets of the simulated server: as much of them as the recipes use.

    COMMANDS["ZADD"](scores, ("ZADD", "k", 17, "me"))       # 1: a new member; scores: {"me": 17}

Scores are whole numbers (deadlines in ms).  Each function changes ``scores`` in place and answers
as redis-py does inside of a script: numbers as int, a score as text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clients.recipes.base import ServerError

Scores = dict[str, int]
Words = tuple[Any, ...]
SYNTAX = "syntax error"


def _add(scores: Scores, words: Words) -> int:
    score, member = int(words[2]), str(words[3])
    new = member not in scores
    scores[member] = score
    return int(new)


def _remove(scores: Scores, words: Words) -> int:
    return sum(scores.pop(str(member), None) is not None for member in words[2:])


def _count(scores: Scores, words: Words) -> int:
    return len(scores)


def _score(scores: Scores, words: Words) -> str | None:
    score = scores.get(str(words[2]))
    return None if score is None else str(score)


def _purge(scores: Scores, words: Words) -> int:
    """ZREMRANGEBYSCORE from ``-inf`` on."""
    if words[2] != "-inf":
        raise ServerError(SYNTAX)
    over = [member for member, score in scores.items() if score <= int(words[3])]
    for member in over:
        del scores[member]
    return len(over)


def _last(scores: Scores, words: Words) -> list[str]:
    """ZRANGE -1 -1 WITHSCORES: the member with the greatest score."""
    if words[2:] != (-1, -1, "WITHSCORES"):
        raise ServerError(SYNTAX)
    if not scores:
        return []
    member = max(scores, key=lambda one: (scores[one], one))
    return [member, str(scores[member])]


COMMANDS: dict[str, Callable[[Scores, Words], Any]] = {
    "ZADD": _add,
    "ZREM": _remove,
    "ZCARD": _count,
    "ZSCORE": _score,
    "ZREMRANGEBYSCORE": _purge,
    "ZRANGE": _last,
}
WRITES = frozenset({"ZADD", "ZREM", "ZREMRANGEBYSCORE"})
