"""Contexts and decisions: what is refused, with which path; published schemas."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from clients.retry.constraints import parse
from clients.retry.failures import Kind, kind_of
from clients.retry.model import Decision, read_context
from harness.core.errors import UserError
from harness.schema_export import schema
from tests.retry.contexts import BASE


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"lock_name": ""}, "$.lock_name"),
        ({"requester_id": None}, "$.requester_id"),
        ({"lock_ttl_seconds": True}, "$.lock_ttl_seconds"),
        ({"lock_ttl_seconds": "10"}, "$.lock_ttl_seconds"),
        ({"elapsed_wait_seconds": -1}, "$.elapsed_wait_seconds"),
        ({"max_wait_budget_seconds": None}, "$.max_wait_budget_seconds"),
        ({"consecutive_failures": 2.5}, "$.consecutive_failures"),
        ({"consecutive_failures": 2.0}, "$.consecutive_failures"),
        ({"consecutive_failures": True}, "$.consecutive_failures"),
        ({"failure_reason_unchanged": 1}, "$.failure_reason_unchanged"),
        ({"other_waiters_exist": -1}, "$.other_waiters_exist"),
        ({"other_waiters_exist": 2.5}, "$.other_waiters_exist"),
        ({"error_code": 2.5}, "$.error_code"),
        ({"error_code": True}, "$.error_code"),
        ({"fairness_policy": "whatever"}, "$.fairness_policy"),
        ({"queue_position": 0}, "$.queue_position"),
        ({"wait_for": [["a", "b"], ["a"]]}, "$.wait_for[1]"),
        ({"wait_for": [["a", 1]]}, "$.wait_for[0][1]"),
        ({"constraints": "none"}, "$.constraints"),
        ({"queue_postion": 1}, "did you mean 'queue_position'"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(changes: dict[str, Any], path: str) -> None:
    with pytest.raises(UserError) as caught:
        read_context(json.dumps(BASE | changes))
    assert len(caught.value.problems) == 1, caught.value.problems
    assert path in caught.value.problems[0]


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{", '{"a": 1, "a": 2}', '{"a": NaN}', "[" * 100_000, "9" * 5_000, b"\xff"],
)
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        read_context(text)


def test_numbers_beyond_all_bounds_are_no_numbers() -> None:
    for number in ("1e400", "1" + "0" * 400, "-0.001", "Infinity"):
        text = json.dumps(BASE).replace(
            '"elapsed_wait_seconds": 2', f'"elapsed_wait_seconds": {number}'
        )
        with pytest.raises(UserError):
            read_context(text)
    tiny = json.dumps(BASE).replace('"elapsed_wait_seconds": 2', '"elapsed_wait_seconds": 1e-400')
    assert read_context(tiny).elapsed_wait_seconds == Decimal("1e-400")


def test_all_problems_at_once() -> None:
    with pytest.raises(UserError) as caught:
        read_context('{"lock_name": ""}')
    assert len(caught.value.problems) == 12


def test_null_is_absent_where_optional_and_only_there() -> None:
    assert read_context(json.dumps(BASE | {"queue_position": None, "wait_for": None}))
    for name in BASE:
        with pytest.raises(UserError, match=name):
            read_context(json.dumps({k: v for k, v in BASE.items() if k != name}))


def test_a_decision_carries_what_belongs_to_it_and_nothing_else() -> None:
    same: dict[str, Any] = {
        "starvation_risk": "low",
        "deadlock_detected": False,
        "explanation": "x",
    }
    assert "escalation_reason" not in Decision(decision="retry", retry_after_ms=1, **same).as_dict()
    for wrong in (
        {"decision": "retry"},
        {"decision": "abandon", "retry_after_ms": 1},
        {"decision": "escalate"},
        {"decision": "retry", "retry_after_ms": 1, "escalation_reason": "x"},
        {"decision": "retry", "retry_after_ms": -1},
        {"decision": "retry", "retry_after_ms": True},
    ):
        with pytest.raises(ValidationError):
            Decision(**(same | wrong))


def test_the_schemas_list_every_key() -> None:
    context, decision = schema("retry-context"), schema("retry-decision")
    assert set(context["required"]) == set(BASE)
    assert context["additionalProperties"] is False
    assert set(decision["properties"]) == set(Decision.model_fields)


def test_sentences() -> None:
    said = parse(
        (
            "Must not exceed 3 retries", "retry at most two times",
            "Delay must not exceed 2 seconds",
            "must escalate after 1.5 min", "Must wait at least 80ms between retries", "Must sing",
        )
    )  # fmt: skip
    assert said.max_retries == 2
    times = (said.longest_ms, said.shortest_ms, said.escalate_after_ms)
    assert [int(time or 0) for time in times] == [2000, 80, 90_000]
    assert said.unknown == ("Must sing",)


@pytest.mark.parametrize(
    ("reason", "code", "kind"),
    [
        ("lock is held by another owner", None, Kind.BUSY),
        ("canceling statement due to lock timeout", "55P03", Kind.BUSY),
        ("timed out waiting for the lock", None, Kind.BUSY),
        ("Timeout reading from socket", None, Kind.UNKNOWN),
        ("", "DEADLINE_EXCEEDED", Kind.UNKNOWN),
        ("NOPERM this user has no permissions", None, Kind.DENIED),
        ("connection refused", None, Kind.UNREACHABLE),
        ("etcdserver: no leader", None, Kind.QUORUM),
        ("hello", None, Kind.OTHER),
    ],
)
def test_kinds_of_failure(reason: str, code: str | None, kind: Kind) -> None:
    assert kind_of(reason, code) is kind
