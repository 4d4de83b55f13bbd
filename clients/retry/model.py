"""What goes into a retry decision and what comes out, as strict models with published schemas.

    context = read_context('{"lock_name": "orders", ...}')     # UserError lists every problem
    Decision(decision="retry", retry_after_ms=120, starvation_risk="low", explanation="...")

Traps: Python's ``json`` takes NaN, 1e400 and duplicate keys without a word, and ``True`` is an int;
all of these are refused here.  Numbers are kept as decimals, because at exactly 80 % of a budget
binary fractions would decide by rounding.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from harness.core.errors import UserError
from harness.core.limits import RETRY_CONTEXT_BYTES_MAX

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Fairness = Literal["fifo", "priority", "no-starvation-guarantee"]
Risk = Literal["low", "medium", "high"]
Strategy = Literal["linear", "exponential", "decorrelated-jitter"]
FIFO, PRIORITY, NO_GUARANTEE = "fifo", "priority", "no-starvation-guarantee"
SPELLINGS = {
    **dict.fromkeys(("fifo", "first-in-first-out", "first-come-first-served", "fair"), FIFO),
    **dict.fromkeys(("priority", "priority-based", "by-priority", "prio"), PRIORITY),
    **dict.fromkeys(
        ("no-starvation-guarantee", "none", "unfair", "best-effort", "no-guarantee"), NO_GUARANTEE
    ),
}


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("must be a number")
    try:
        finite = math.isfinite(float(value))
    except OverflowError:
        finite = False
    if not finite:
        raise ValueError("must be a finite number")
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if exact < 0:
        raise ValueError("must be 0 or more")
    return exact


def _policy(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = SPELLINGS.get(re.sub(r"[\s_-]+", "-", value.strip().lower()))
    if found is None:
        raise ValueError(f"must be one of {FIFO!r}, {PRIORITY!r}, {NO_GUARANTEE!r}")
    return found


def _waiters(value: Any) -> Any:
    if isinstance(value, int) and value >= 0:
        return value
    raise ValueError("must be true, false or a count of 0 or more")


def _code(value: Any) -> Any:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise ValueError("must be a string, an integer or null")


def _plain(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


Seconds = Annotated[
    Decimal,
    BeforeValidator(_number),
    PlainSerializer(_plain),
    WithJsonSchema({"type": "number", "minimum": 0}),
]
Waiters = Annotated[
    bool | int,
    BeforeValidator(_waiters),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "integer", "minimum": 0}]}),
]
Code = Annotated[
    str | int,
    BeforeValidator(_code),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
]
Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0)]
Pair = Annotated[list[Name], Field(min_length=2, max_length=2)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Earlier(_Strict):
    """One earlier decision on the same request."""

    decision: Literal["retry", "escalate", "abandon"]
    retry_after_ms: Count | None = None


class Context(_Strict):
    """A refused attempt to get a lock, with all that is known about it."""

    lock_name: Name
    requester_id: Name
    current_holder_id: Name | None = Field(description="null: free, or not known")
    lock_ttl_seconds: Seconds | None = Field(description="null: not known; 0: no lease")
    elapsed_wait_seconds: Seconds = Field(description="since the first attempt")
    max_wait_budget_seconds: Seconds = Field(description="hard: no wait goes beyond it")
    fairness_policy: Annotated[
        Fairness, BeforeValidator(_policy), WithJsonSchema({"type": "string"})
    ] = Field(description="fifo, priority or no-starvation-guarantee; common spellings are taken")
    failure_reason: str = Field(description="what the lock service or its client said")
    error_code: Code | None = Field(description="as the service gave it")
    consecutive_failures: Count = Field(description="with this one")
    failure_reason_unchanged: bool = Field(description="all of them for the same reason")
    other_waiters_exist: Waiters = Field(description="yes or no, or how many")
    queue_position: Annotated[int, Field(ge=1)] | None = Field(None, description="1: next")
    holder_acquired_ago_seconds: Seconds | None = Field(
        None, description="since the holder's grant or last renewal"
    )
    wait_for: list[Pair] | None = Field(None, description="[waiter, holder] pairs of clients")
    constraints: list[str] | None = Field(None, description="sentences; see the documentation")
    priority: int | None = Field(None, description="of the requester; larger goes first")
    monotonic_seconds: Seconds | None = Field(None, description="clock reading at the failure")
    latency_floor_ms: Seconds | None = Field(None, description="fastest answer observed")
    observed_hold_seconds: Seconds | None = Field(None, description="how long holders usually hold")
    release_notice: bool | None = Field(
        None, description="the requester is told when it is its turn; word may be lost"
    )
    max_retries: Count | None = Field(None, description="hard, as the wait budget")
    history: list[Earlier] | None = Field(None, description="earlier decisions, oldest first")
    seed: Count | None = Field(None, description="of all randomness in the decision; default 0")


class Decision(_Strict):
    """What the client is to do now."""

    decision: Literal["retry", "escalate", "abandon"]
    retry_after_ms: Count | None = Field(None, description="only with retry")
    backoff_strategy: Strategy | None = None
    lease_renewal_instruction: str | None = None
    starvation_risk: Risk
    deadlock_detected: bool
    escalation_reason: Name | None = Field(None, description="only with escalate")
    explanation: Name = Field(description="one sentence that names the facts used")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.retry_after_ms is not None) != (self.decision == "retry"):
            raise ValueError("retry_after_ms must be given with 'retry' and only with it")
        if (self.escalation_reason is not None) != (self.decision == "escalate"):
            raise ValueError("escalation_reason must be given with 'escalate' and only with it")
        return self

    def as_dict(self) -> dict[str, Any]:
        """The JSON object: what does not belong to this decision is absent, not null."""
        found = self.model_dump()
        for name in ("retry_after_ms", "escalation_reason"):
            if found[name] is None:
                del found[name]
        return found


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key!r} is given twice")
        found[key] = value
    return found


# Strict JSON: ValueError on NaN, infinities and duplicate keys.
STRICT = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
EXACT_NUMBERS = json.JSONDecoder(
    parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_no_duplicates
)


def read_context(text: str | bytes) -> Context:
    """The context in a JSON text; UserError with every problem and its path."""
    if len(text) > RETRY_CONTEXT_BYTES_MAX:
        raise UserError(
            f"retry context: {len(text)} bytes, at most {RETRY_CONTEXT_BYTES_MAX} are read"
        )
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        data = EXACT_NUMBERS.decode(decoded)
    except (ValueError, RecursionError) as error:
        raise UserError("retry context: not one JSON object", [f"$: {error}"]) from error
    return context_from(data)


def context_from(data: Any) -> Context:
    """The context in a decoded object; UserError with every problem and its path."""
    if not isinstance(data, dict):
        raise UserError("retry context: not one JSON object", [f"$: got {_shown(data)}"])
    try:
        return Context.model_validate(data)
    except ValidationError as error:
        raise UserError("retry context: not valid", problems(error, Context)) from error


def problems(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """One line per problem: path, value, rule; for an unknown key, the one that was meant."""
    lines: dict[str, None] = {}
    for item in error.errors(include_url=False):
        location = item["loc"]
        # Which branch of a union failed is no part of the user's data.
        places = [p for p in location if isinstance(p, int) or p in model.model_fields]
        places = list(location) if item["type"] == "extra_forbidden" else places
        path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in places)
        says = item["msg"].removeprefix("Value error, ")
        if item["type"] == "missing":
            says = "is required"
        elif item["type"] == "extra_forbidden":
            close = difflib.get_close_matches(str(location[-1]), model.model_fields, n=1)
            says = "is not a known key" + (f"; did you mean {close[0]!r}?" if close else "")
        elif location:
            says = f"{says}, got {_shown(item['input'])}"
        lines[f"${path}: {says}"] = None
    return list(lines)


def _shown(value: Any) -> str:
    text = str(value) if isinstance(value, Decimal) else json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


def schema(model: type[BaseModel], name: str) -> dict[str, Any]:
    """JSON Schema (2020-12) of a context or a decision."""
    return {"$schema": DIALECT, "$id": f"urn:lockhavoc:{name}:1", **model.model_json_schema()}


def decision_schema() -> dict[str, Any]:
    """Schema of a decision, with the two fields that depend on what was decided."""
    found = schema(Decision, "retry-decision")
    found["required"] = [
        "decision", "backoff_strategy", "lease_renewal_instruction", "starvation_risk",
        "deadlock_detected", "explanation",
    ]  # fmt: skip
    found["properties"]["retry_after_ms"] = {"type": "integer", "minimum": 0}
    found["properties"]["escalation_reason"] = {"type": "string", "minLength": 1}
    found["allOf"] = [
        {
            "if": {"properties": {"decision": {"const": word}}},
            "then": {"required": [field]},
            "else": {"properties": {field: False}},
        }
        for word, field in (("retry", "retry_after_ms"), ("escalate", "escalation_reason"))
    ]
    return found


def context_schema() -> dict[str, Any]:
    """Schema of a context."""
    return schema(Context, "retry-context")
