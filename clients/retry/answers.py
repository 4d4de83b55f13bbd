"""Reads what an outside decider answered: lossless cleaning yes, guessing no.

    read_answer(b'```json\\n{"decision": "abort", "reasoning": "no use"}\\n```', "low")

Taken off: code fences, prose around exactly one object, ``"400"`` for 400, case of the words, and
the alias form (``abort``, ``backoff_ms``, ``reasoning``).  Anything else that does not fit is a
problem with its path.  Trap: in a torn answer an inner object would parse; so an object that does
not end is a problem, and nothing inside of it is looked at.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import ValidationError

from clients.retry.model import STRICT, Decision, problems
from harness.core.limits import RETRY_ANSWER_BYTES_MAX

ALIASES = {"backoff_ms": "retry_after_ms", "reasoning": "explanation"}
WORDS = ("decision", "backoff_strategy", "starvation_risk")


class AnswerError(ValueError):
    """The answer cannot be used; ``problems`` says why, one line each."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def read_answer(answer: bytes, risk: str) -> Decision:
    """The decision in an answer; ``risk`` fills the alias form, which has no such field."""
    if len(answer) > RETRY_ANSWER_BYTES_MAX:
        raise AnswerError(f"$: over {RETRY_ANSWER_BYTES_MAX} bytes")
    try:
        text = answer.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise AnswerError(f"$: not UTF-8: {error.reason} at byte {error.start}") from error
    if not text:
        raise AnswerError("$: the answer is empty")
    fields = _normalised(_object_in(text), risk)
    try:
        return Decision.model_validate(fields)
    except ValidationError as error:
        raise AnswerError(*problems(error, Decision)) from error


def _object_in(text: str) -> dict[str, Any]:
    try:
        whole = STRICT.decode(text)
    except json.JSONDecodeError:
        return _only_object(text)
    except (ValueError, RecursionError) as error:
        raise AnswerError(f"$: {error}") from error
    if not isinstance(whole, dict):
        raise AnswerError(f"$: must be an object, got {text[:60]}")
    return whole


def _only_object(text: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    at = text.find("{")
    while at >= 0:
        try:
            value, end = STRICT.raw_decode(text, at)
        except json.JSONDecodeError as error:
            if _OPENS.match(text, at):
                raise AnswerError(f"$: {error.msg} at character {error.pos}") from error
            end = at + 1  # a brace in prose
        except (ValueError, RecursionError) as error:
            raise AnswerError(f"$: {error}") from error
        else:
            if value not in found:
                found.append(value)
        at = text.find("{", end)
    if len(found) != 1:
        raise AnswerError(f"$: must hold one JSON object, holds {len(found)}")
    return found[0]


_OPENS = re.compile(r'\{\s*"')


def _normalised(fields: dict[str, Any], risk: str) -> dict[str, Any]:
    fields = {key: value for key, value in fields.items() if value is not None}
    for word in WORDS:
        if isinstance(fields.get(word), str):
            fields[word] = fields[word].strip().lower()
    aliased = fields.get("decision") == "abort"
    if aliased:
        fields["decision"] = "abandon"
    for alias, name in ALIASES.items():
        if alias not in fields:
            continue
        aliased = True
        value = fields.pop(alias)
        if fields.setdefault(name, value) != value:
            raise AnswerError(f"$.{alias}: says something else than {name}")
    if isinstance(fields.get("retry_after_ms"), str | float):
        fields["retry_after_ms"] = _whole(fields["retry_after_ms"])
    flag = fields.get("deadlock_detected")
    if isinstance(flag, str) and flag.strip().lower() in ("true", "false"):
        fields["deadlock_detected"] = flag.strip().lower() == "true"
    if aliased:
        fields.setdefault("starvation_risk", risk)
        fields.setdefault("deadlock_detected", False)
        if fields.get("decision") == "escalate" and "explanation" in fields:
            fields.setdefault("escalation_reason", fields["explanation"])
        if fields.get("decision") != "retry" and fields.get("retry_after_ms") == 0:
            del fields["retry_after_ms"]  # this form has no way to leave it out
    return fields


def _whole(value: str | float) -> Any:
    if isinstance(value, str):
        text = value.strip()
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else value
    return int(value) if value.is_integer() and abs(value) < 1e15 else value
