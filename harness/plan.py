"""Scenario + seed -> Plan: every fault and every choice of the nemesis drawn up front.

The plan is stored (``plan.json``) and holds the scenario with its drawn values, so it can be run
itself: ``lockhavoc run store/NAME/TIME/plan.json`` repeats exactly these faults.

Each fault draws from a stream of its own, so adding one leaves the others as they were.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from harness.core.errors import UserError
from harness.core.rng import stream
from harness.scenario import FaultSpec, Scenario, Span, parse

SCHEMA = "lockhavoc/plan/1"


class FaultStep(msgspec.Struct, frozen=True, kw_only=True):
    """One fault to come.  ``arm_ms``: not before this, since the start of the run.

    ``after``: id of the step that must have healed first (a repeated fault), with ``arm_ms`` then
    counted from that moment.
    """

    id: int
    kind: str
    target: str
    when: str
    near_ms: int
    arm_ms: int
    duration_ms: int
    after: int | None = None
    params: dict[str, Any] = {}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a run will do."""

    schema: str = SCHEMA
    seed: int
    scenario: dict[str, Any]
    faults: list[FaultStep]


def draw(scenario: Scenario, seed: int) -> Plan:
    """Draws the whole plan; the same scenario and seed give the same plan for ever."""
    steps: list[FaultStep] = []
    for index, spec in enumerate(scenario.faults):
        steps += _draw_fault(spec, index, seed, first_id=len(steps))
    return Plan(seed=seed, scenario=_data(scenario), faults=steps)


def plan_for(scenario: Scenario, plan: Plan) -> Plan:
    """The same faults for a scenario with another ``[client]``: no draw depends on that."""
    return msgspec.structs.replace(plan, scenario=_data(scenario))


def _data(scenario: Scenario) -> dict[str, Any]:
    data: dict[str, Any] = scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
    return data


def _draw_fault(spec: FaultSpec, index: int, seed: int, *, first_id: int) -> list[FaultStep]:
    rng = stream(seed, f"fault/{index}")

    def pick(span: Span) -> int:
        return rng.randint(*span)

    steps = []
    for repeat in range(spec.count):
        identity = first_id + repeat
        gap = spec.every_ms or spec.start_ms
        aim = rng.choice(spec.mix) if spec.mix else spec
        steps.append(
            FaultStep(
                id=identity,
                kind=aim.kind,
                target=aim.target,
                when=aim.when,
                near_ms=aim.near_ms,
                arm_ms=pick(spec.start_ms if repeat == 0 else gap),
                duration_ms=pick(spec.duration_ms),
                after=identity - 1 if repeat else None,
                params=dict(aim.params),
            )
        )
    return steps


def dump(plan: Plan) -> bytes:
    """The plan as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n"


def load(path: Path) -> tuple[Scenario, Plan]:
    """Reads a stored plan; UserError says what is wrong with it."""
    try:
        plan = msgspec.json.decode(path.read_bytes(), type=Plan, strict=True)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such plan") from None
    except (OSError, msgspec.DecodeError) as error:
        raise UserError(f"{path}: not a plan: {error}") from error
    if plan.schema != SCHEMA:
        raise UserError(f"{path}: schema is {plan.schema!r}, this version reads {SCHEMA!r}")
    return parse(_lists(plan.scenario), source=str(path)), plan


def _lists(value: Any) -> Any:
    """JSON round trip, so that tuples and the like are what TOML would have given."""
    return json.loads(json.dumps(value))
