"""Scenario files: TOML in, a checked ``Scenario`` out, or *all* problems at once.

    name = "redis-holder-pause"
    [claim]
    verdict = "violation"
    by = ["fencing"]
    why = "a paused client outlives its lease and nothing fences the resource"
    [client]
    library = "redis-py"
    [[faults]]
    kind = "worker-pause"
    target = "holder"
    when = "held"

Durations are milliseconds; a range ``[5, 20]`` lets the seed pick.  Data only: nothing in a
scenario is ever executed, but for what the user names to be run in ``[client]``: an interpreter,
versions to install, a wheel, an adapter.

Trap: TOML values carry no positions, so problems name the path (``faults[0].perod``).
"""

from __future__ import annotations

import difflib
import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from harness.core import limits
from harness.core.errors import UserError
from harness.rules import cross_problems
from harness.workloads.registry import WORKLOADS

CHOICES = ("with", "wheel", "adapter")
"""Keys of ``[client]`` that say which version of the library runs (``python`` says where)."""

Span = tuple[int, int]
"""Lowest and highest value, both included; the seed picks."""


def _span(value: object) -> object:
    """Accepts ``5`` and ``[5, 20]``; anything else is left for pydantic to complain about."""
    if isinstance(value, int) and not isinstance(value, bool):
        return (value, value)
    if isinstance(value, list) and len(value) == 2:
        low, high = value
        if isinstance(low, int) and isinstance(high, int) and low > high:
            raise ValueError(f"the range runs backwards: {low} > {high}; write [{high}, {low}]")
        return (low, high)
    raise ValueError("should be a whole number of ms, or a range [lowest, highest]")


_Ms = Annotated[int, Field(ge=0)]
SpanMs = Annotated[
    tuple[_Ms, _Ms], BeforeValidator(_span, json_schema_input_type=_Ms | tuple[_Ms, _Ms])
]


class Part(BaseModel):
    """Base of all parts: unknown keys are errors, types are not coerced, values don't change."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Claim(Part):
    """What the scenario says will happen; the verdict is judged against it."""

    verdict: Literal["holds", "may-fail", "violation"] = Field(
        description="holds: no checker finds anything. violation: a checker of `by` finds one."
    )
    by: tuple[str, ...] = Field((), strict=False, description="checkers that must find it")
    tolerates: tuple[str, ...] = Field(
        (), strict=False, description="checkers whose violation is expected and does not count"
    )
    why: str = Field("", description="why one should expect this")


class Backend(Part):
    """The lock service."""

    name: str = Field("redis-single", description="a registered backend")
    options: dict[str, Any] = Field({}, description="options of the backend")


class Client(Part):
    """The lock library under test."""

    library: str = Field(description="a registered library or canary")
    python: str | None = Field(None, description="interpreter to use instead of a made one")
    with_: tuple[str, ...] = Field(
        (), alias="with", strict=False, description="versions to install, as redis==5.0.0"
    )
    wheel: str | None = Field(None, description="wheel to install")
    adapter: str | None = Field(None, description="adapter file to run in place of a library")
    options: dict[str, Any] = Field({}, description="options of the adapter")


class Museum(Part):
    """A defect of a released library that a scenario shows; ``client`` names a faulty version."""

    report: str = Field(pattern=r"^https://", description="where it was reported or mended")
    defect: str = Field(description="what the faulty version does")
    faulty: str = Field(description="which versions have it")
    fixed_with: tuple[str, ...] = Field(
        (), strict=False, description="client.with of a version without it (run --fixed)"
    )
    fixed_library: str | None = Field(None, description="client.library of it, if another")
    fixed_options: dict[str, Any] | None = Field(None, description="client.options of it")


class Workload(Part):
    """What the workers do, with the times of their critical sections."""

    kind: str = Field("mutex", description="a registered workload (docs/reference/workloads.md)")
    params: dict[str, Any] = Field({}, description="parameters of the workload")
    workers: int = Field(4, ge=1, le=limits.WORKERS_MAX)
    keys: int = Field(1, ge=1, le=limits.KEYS_MAX, description="locks, each with its resource")
    ttl_ms: int = Field(1000, ge=1, description="lease length asked for")
    hold_ms: SpanMs = Field((5, 20), description="work between the grant and the write")
    idle_ms: SpanMs = Field((0, 10), description="pause between two sections")
    acquire_timeout_ms: int = Field(5000, ge=0, description="longest wait; 0 = try once")
    renew_every_ms: int | None = Field(None, ge=1, description="renew while working")
    writes: int = Field(1, ge=0, le=100, description="protected writes per section")


class Resource(Part):
    """The protected resource."""

    mode: Literal["unfenced", "fenced", "cas", "none"] = "unfenced"


class FaultAim(Part):
    """One kind of fault with its aim."""

    kind: str = Field("", description="a registered fault")
    target: str = Field("holder", description="whom it hits")
    when: Literal["", "held", "near-expiry", "renewing", "waiting", "between-grant-and-reply"] = (
        Field("", description="the moment to wait for once armed; empty = at once")
    )
    near_ms: int = Field(100, ge=1, description="how close to expiry `near-expiry` is")
    params: dict[str, Any] = Field({}, description="parameters of the fault")


class FaultSpec(FaultAim):
    """A fault, or a mix of which the seed picks one each time, and its schedule."""

    mix: tuple[FaultAim, ...] = Field(
        (), strict=False, description="instead of a kind: one of these, picked anew each time"
    )
    start_ms: SpanMs = Field((1000, 1000), description="armed this long after the start")
    every_ms: SpanMs | None = Field(None, description="armed again this long after it healed")
    count: int = Field(1, ge=1, le=1000, description="how many times")
    duration_ms: SpanMs = Field((1000, 1000), description="from injection to heal")


class Run(Part):
    """Length of the run and its bounds."""

    time_ms: int = Field(10_000, ge=1, le=limits.RUN_TIME_MS_MAX, description="main phase")
    recovery_ms: int = Field(5_000, ge=1, description="bound for the next grant after healing")
    grant_ms: int | None = Field(
        None,
        ge=1,
        description="bound for a grant at any time, also during faults that leave a majority of "
        "the servers; default: only measured",
    )
    belief_ms: int | None = Field(
        None, ge=0, description="bound for believing in a lock that is gone; default: only measured"
    )
    seed: int | None = Field(None, ge=0, description="default: drawn and printed")
    drift_ppm: int = Field(0, ge=0, le=100_000, description="bound on clock-rate error")


class Scenario(Part):
    """A whole scenario file."""

    schema_: str | None = Field(None, alias="$schema")
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$", description="folder in the store")
    description: str = ""
    claim: Claim
    backend: Backend = Backend()
    client: Client
    workload: Workload = Workload()
    resource: Resource = Resource()
    faults: tuple[FaultSpec, ...] = Field((), strict=False)
    run: Run = Run()
    museum: Museum | None = None

    def digest(self) -> str:
        """SHA-256 (first 16 hex digits) over the canonical JSON of all values, seed left out."""
        data = self.model_dump(mode="json", by_alias=True)
        data["run"].pop("seed", None)
        for name in ("belief_ms", "grant_ms"):
            if data["run"][name] is None:
                del data["run"][name]
        if not data["workload"]["params"]:
            del data["workload"]["params"]
        # Parts that most files lack, which must not make all files others than they were.
        for part, name in (*((data["client"], key) for key in CHOICES), (data, "museum")):
            if not part[name]:
                part.pop(name)
            elif name in ("wheel", "adapter"):
                part[name] = Path(part[name]).name
        text = json.dumps(data, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def load(path: Path) -> Scenario:
    """Reads and checks a scenario file; UserError lists every problem with its path."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such scenario file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not valid TOML: {error}") from error
    _beside(data.get("client"), path.parent)
    return parse(data, source=str(path))


def _beside(client: object, folder: Path) -> None:
    """Makes files that a scenario names relative to itself absolute, for a plan goes anywhere."""
    for name in ("wheel", "adapter"):
        if isinstance(client, dict) and isinstance(client.get(name), str):
            client[name] = str((folder / client[name]).absolute())


def parse(data: Mapping[str, Any], *, source: str = "scenario") -> Scenario:
    """Checks a scenario given as data; UserError lists every problem with its path."""
    problems: list[str] = []
    scenario = None
    try:
        scenario = Scenario.model_validate(data)
    except ValidationError as error:
        problems += list(_pydantic_problems(error))
    problems += cross_problems(data)
    if problems or scenario is None:
        count = len(problems)
        raise UserError(
            f"{source}: {count} problem{'s' if count != 1 else ''} in this scenario", problems
        )
    return scenario


def _pydantic_problems(error: ValidationError) -> Iterator[str]:
    for entry in error.errors(include_url=False):
        path = _path(entry["loc"])
        if entry["type"] == "extra_forbidden":
            known = _fields_at(entry["loc"][:-1])
            close = difflib.get_close_matches(str(entry["loc"][-1]), known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
            yield f"{path}: unknown key; {hint}"
        elif entry["type"] == "missing":
            yield f"{path}: missing; this key is required"
        else:
            message = entry["msg"].removeprefix("Value error, ")
            value = json.dumps(entry["input"], default=str)
            yield f"{path}: {message[0].lower()}{message[1:]} (got {value[:80]})"


def _path(location: tuple[int | str, ...]) -> str:
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text or "(top level)"


def _fields_at(location: tuple[int | str, ...]) -> list[str]:
    """Names of the keys that are allowed at a place of the file."""
    model: type[BaseModel] = Scenario
    for step in location:
        if isinstance(step, int):
            continue
        if step in ("faults", "mix"):
            model = FaultSpec if step == "faults" else FaultAim
            continue
        annotation = model.model_fields[step].annotation
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        model = annotation
    return sorted(field.alias or name for name, field in model.model_fields.items())


def json_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of a scenario file, for editors and other tools."""
    schema = Scenario.model_json_schema(by_alias=True)
    schema["$defs"]["Workload"]["properties"]["kind"]["enum"] = WORKLOADS.names()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://lockhavoc.dev/schemas/scenario.schema.json",
        **schema,
    }
