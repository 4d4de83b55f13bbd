"""The one way by which an outside decider's answer becomes a decision.

    asked = ask(context, Program(["python", "decider.py"]))
    asked.decision, asked.source, asked.notes

One call, at most one repair call with the problems of the first answer, then the default back-off.
The bounds of ``bounds`` bind in any case, on the time that the decider itself has used up, too.
Where they leave no choice the decider is not asked at all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Protocol

from clients.retry.answers import AnswerError, read_answer
from clients.retry.bounds import enforce, forced, risk
from clients.retry.facts import DEFAULTS, Facts, Settings
from clients.retry.model import Context, Decision
from clients.retry.program import DeciderFailed
from clients.retry.rules import default_backoff
from harness.core.clock import NS_PER_S


class Outside(Protocol):
    """Takes a JSON request and the most seconds it may use; DeciderFailed if it has no answer."""

    def __call__(self, request: bytes, most_s: float, /) -> bytes: ...


@dataclass
class Asked:
    """A decision, who made it (``outside``, ``bounds`` or ``default``) and what was noted."""

    decision: Decision
    source: str
    notes: list[str] = field(default_factory=list)
    calls: int = 0


def ask(
    context: Context,
    outside: Outside,
    settings: Settings = DEFAULTS,
    now_ns: Callable[[], int] = time.monotonic_ns,
) -> Asked:
    """The decision of ``outside`` on a context, within all bounds."""
    facts = Facts.of(context, settings)
    must = forced(context, facts, settings)
    if must is not None:
        return Asked(must, "bounds", ["the bounds leave no choice, the decider was not asked"])
    began = now_ns()
    request: dict[str, Any] = context.model_dump(mode="json", exclude_none=True)
    for name in ("current_holder_id", "lock_ttl_seconds", "error_code"):
        request.setdefault(name, None)
    suggested, notes, calls = _suggestion(context, facts, settings, request, outside, now_ns)
    later = _moved_on(context, now_ns() - began)
    # The hard budget runs on while the decider thinks; its share is judged at the failure.
    bounds = replace(Facts.of(later, settings), over_share=facts.over_share)
    if suggested is None:
        why = f"no usable answer of the decider ({notes[-1][:200].rstrip('.')})"
        decision, changes = default_backoff(later, bounds, settings, why)
        return Asked(decision, "default", notes + changes, calls)
    decision, changes = enforce(later, bounds, suggested, settings)
    return Asked(decision, "outside" if not changes else "bounds", notes + changes, calls)


def _suggestion(
    context: Context,
    facts: Facts,
    settings: Settings,
    request: dict[str, Any],
    outside: Outside,
    now_ns: Callable[[], int],
) -> tuple[Decision | None, list[str], int]:
    notes: list[str] = []
    end_ns = now_ns() + facts.left_ms * 1_000_000
    for call in (1, 2):
        left_s = (end_ns - now_ns()) / NS_PER_S
        if left_s <= 0:
            notes.append("the budget ended before the decider answered")
            return None, notes, call - 1
        try:
            answer = _called(outside, json.dumps(request).encode(), left_s)
            return read_answer(answer, risk(context, facts, settings)), notes, call
        except DeciderFailed as error:
            notes.append(f"call {call}: {error}")
            return None, notes, call
        except AnswerError as error:
            notes.append(f"call {call}: {error}")
            shown = answer[:4_000].decode(errors="replace")
            request["repair"] = {"answer": shown, "problems": list(error.problems)}
    return None, notes, 2


def _called(outside: Outside, request: bytes, most_s: float) -> bytes:
    try:
        return outside(request, most_s)
    except DeciderFailed:
        raise
    except Exception as error:  # a decider's fault must not become the client's
        raise DeciderFailed(f"raised {type(error).__name__}: {error}") from error


def _moved_on(context: Context, spent_ns: int) -> Context:
    spent = Decimal(max(spent_ns, 0)) / NS_PER_S
    elapsed = context.elapsed_wait_seconds + spent
    return context.model_copy(update={"elapsed_wait_seconds": elapsed})
