"""A recorded history, whoever recorded it, judged by the checkers of the project.

    seen = history_seen(Path("history.edn"))         # Seen: path, digest, facts
    models_for(history)                              # ["mutex"], or what its operations are about

The models are chosen by what the history has: acquire and release make a mutex (with tokens: a
fenced one, with a lease: lease and belief as well), reads and writes of a value a register.

Traps: a malformed history raises UserError with its lines.  A history proves what its model says
and no more: it has no faults and no resource, so recovery and fencing stay open.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec

from checkers import api
from checkers.audit.live.facts import result_facts
from checkers.audit.model import Fact, Place
from checkers.interchange import locate, read_history
from checkers.interchange.files import head
from checkers.models.base import ACQUIRE, LOCK_F, RELEASE
from harness.core.errors import UserError
from harness.core.history import NEMESIS, History, Type


class Seen(msgspec.Struct, frozen=True):
    """Something that was recorded: where, the SHA-256 of its bytes, and the facts in it."""

    path: str
    digest: str
    facts: tuple[Fact, ...]


def is_history(path: Path) -> bool:
    """Whether a file is a history: Jepsen's EDN by its name, ours by its first line."""
    if path.name.endswith((".edn", ".edn.gz")):
        return True
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        return False
    first = head(path).partition(b"\n")[0]
    return b'"lockhavoc/history/' in first or (b'"process"' in first and b'"invoke"' in first)


def digest_of(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def models_for(history: History) -> list[str]:
    """The models that the operations of a history ask for; UserError if there is none."""
    names = {op.f for op in history.ops if op.process != NEMESIS}
    if any(name in LOCK_F for name in names):
        return _of_locks(history)
    if {"read", "write", "cas"} & names:
        return ["cas" if "cas" in names else "register"]
    raise UserError(
        f"no model fits operations called {', '.join(sorted(names)[:8]) or '(none)'}; "
        "name one with --model"
    )


def _of_locks(history: History) -> list[str]:
    values = [op.value for op in history.ops if isinstance(op.value, dict)]
    if (history.header.k or 1) > 1:
        return ["semaphore"]
    if any(value.get("mode") or value.get("kind") for value in values):
        return ["rwlock"]
    if _reenters(history):
        return ["reentrant"]
    if history.header.ttl_ns:
        return ["lease", "belief"]
    return ["fenced" if any(value.get("token") is not None for value in values) else "mutex"]


def _reenters(history: History) -> bool:
    """Whether an owner that has the lock asks for it again: a mutex would make it wait."""
    held: set[tuple[str | None, str]] = set()
    for op in history.ops:
        owner = op.value.get("owner") if isinstance(op.value, dict) else None
        who = (op.key, str(owner if owner is not None else op.process))
        lock_f = LOCK_F.get(op.f)
        if lock_f == ACQUIRE and op.type == Type.INVOKE and who in held:
            return True
        if lock_f == ACQUIRE and op.type == Type.OK:
            held.add(who)
        elif lock_f == RELEASE and op.type == Type.INVOKE:
            held.discard(who)
    return False


def history_seen(
    path: Path, models: Sequence[str] = (), *, ttl_ms: float | None = None, budget_s: float = 20.0
) -> Seen:
    """Reads and judges a history file (JSON lines, Jepsen's EDN, Parquet; .gz too)."""
    file = locate(path)
    history = read_history(file)
    chosen = [api.model_name(name) for name in models] or models_for(history)
    if ttl_ms is not None and not models and chosen[0] in ("mutex", "fenced"):
        chosen = ["lease", "belief"]
    positions = {op.index: at for at, op in enumerate(history.ops)}
    facts: list[Fact] = []
    for name in chosen:
        own_ttl = ttl_ms if name in ("lease", "belief") else None
        result = api.check_model(history, name, ttl_ms=own_ttl, budget_s=budget_s)
        replay = ["lockhavoc", "check", str(path), "--model", name]
        replay += ["--ttl-ms", f"{own_ttl:g}"] if own_ttl else []
        facts += result_facts(
            file.as_posix(),
            [result],
            lambda index: history.line(positions[index]) or positions[index] + 1,
            replay=shlex.join(replay),
            run=False,
        )
    about = Fact("history", Place(file.as_posix(), 1, 1), {"models": tuple(chosen)})
    return Seen(file.as_posix(), digest_of(file), (*facts, about))
