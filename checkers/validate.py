"""Is this a history at all?  A malformed one is named by line and never judged.

    for problem in problems(history): print(problem.line, problem.rule, problem.says)
    validate(history)                 # UserError with all of them (PROBLEMS_MAX at most)

Rules: index-grows, time-goes-on, known-type, known-f, completion-has-invoke, one-completion,
same-f, same-key.  A missing field or a value of the wrong type is found by the readers, which name
the line too.  An invoke while the process' last operation has no completion is no problem: that one
stays open for ever.

Traps.  Events of the nemesis are not paired: they stand alone.  Without line numbers (a history
that was made in memory) ``line`` is None and the message names the index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from checkers.models.base import LOCK_F
from checkers.models.shared import RW_F
from harness.core.errors import UserError
from harness.core.history import NEMESIS, History, Op, Type
from harness.core.limits import PROBLEMS_MAX

KNOWN_F: frozenset[str] = frozenset(
    [*LOCK_F, *RW_F, "read", "write", "cas", "get", "put", "append", "expire", "lost", "believes"]
)
_TYPES = frozenset(str(kind) for kind in Type)


class Problem(msgspec.Struct, frozen=True):
    """What is wrong in which line.  rule: a slug; says: the field, its value, the rule, the fix."""

    line: int | None
    index: int
    rule: str
    says: str


def problems(
    history: History, *, known_f: Collection[str] | None = KNOWN_F, most: int | None = None
) -> list[Problem]:
    """Everything that makes the history malformed, in the order of its lines.

    known_f: names that operations of clients may have (None: any, for models of your own).
    most: stop after so many.
    """
    found: list[Problem] = []
    for position, rule, says in _walk(history.ops, known_f):
        index = history.ops[position].index
        found.append(Problem(history.line(position), index, rule, says))
        if most is not None and len(found) >= most:
            break
    return found


def validate(history: History, *, known_f: Collection[str] | None = KNOWN_F) -> None:
    """UserError naming the lines of a malformed history; nothing if it is well-formed."""
    found = problems(history, known_f=known_f, most=PROBLEMS_MAX + 1)
    if not found:
        return
    lines = [
        f"{'index ' + str(p.index) if p.line is None else 'line ' + str(p.line)}: {p.says}"
        for p in found[:PROBLEMS_MAX]
    ]
    if len(found) > PROBLEMS_MAX:
        lines.append("and more")
    raise UserError("the history is malformed, it was not judged", lines)


def _walk(ops: list[Op], known_f: Collection[str] | None) -> Iterator[tuple[int, str, str]]:
    """(position, rule, message) of each problem."""
    pending: dict[int | str, Op | None] = {}
    last_index, last_time = -1, 0
    for position, op in enumerate(ops):
        index, time, process, kind, f = op.index, op.time, op.process, op.type, op.f
        if index <= last_index:
            yield (
                position,
                "index-grows",
                f"index is {index} after {last_index}, it must grow from line to line",
            )
        if time < last_time:
            yield (
                position,
                "time-goes-on",
                f"time is {time} ns after {last_time} ns, it must not go back; sort the events",
            )
        last_index, last_time = max(index, last_index), max(time, last_time)
        if kind not in _TYPES:
            yield (
                position,
                "known-type",
                f"type is {kind!r}, it must be one of invoke, ok, fail, info",
            )
        elif process == NEMESIS:
            continue
        elif known_f is not None and f not in known_f:
            yield (
                position,
                "known-f",
                f"f is {f!r}, which no model knows (known: acquire, release, renew, read, write, "
                "cas and their synonyms)",
            )
        elif kind == Type.INVOKE:
            pending[process] = op
        elif f != "lost" or process in pending:
            yield from _completion(position, op, pending)


def _completion(
    position: int, op: Op, pending: dict[int | str, Op | None]
) -> Iterator[tuple[int, str, str]]:
    process = op.process
    invoke = pending.get(process)
    if invoke is None:
        again = process in pending
        yield (
            position,
            "one-completion" if again else "completion-has-invoke",
            f"{op.type} of {op.f} by process {process!r} "
            + (
                "completes an operation that was completed before"
                if again
                else "has no invoke before it"
            )
            + "; remove it, or add its invoke",
        )
        return
    if op.f == "lost" and invoke.f != "lost":
        return  # a signal, not a completion
    if op.f != invoke.f:
        yield (
            position,
            "same-f",
            f"f is {op.f!r}, but process {process!r} has {invoke.f!r} pending (index "
            f"{invoke.index}); a completion repeats the f of its invoke",
        )
    elif op.key != invoke.key:
        yield (
            position,
            "same-key",
            f"key is {op.key!r}, but process {process!r} invoked {invoke.f} on {invoke.key!r} "
            f"(index {invoke.index}); a completion repeats the key of its invoke",
        )
    pending[process] = None
