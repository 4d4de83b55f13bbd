"""Parameters of faults as data: one table validates scenarios and prints the reference.

    class Latency(LinkFault):
        parameters = (Parameter("latency_ms", int, "ms", 100, "added on the way back", 1, 60_000),)

    parameter_problems(Latency, {"latncy_ms": 5})
    # ["latncy_ms: unknown parameter; did you mean 'latency_ms'?"]

Trap: TOML has ``true`` and JSON has ``1.0``; neither is an int here, though Python thinks so.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from harness.core.errors import UserError


class Parameter(msgspec.Struct, frozen=True):
    """One parameter: ``low`` and ``high`` bound an int (inclusive), ``choices`` a str."""

    name: str
    type: type[int] | type[str]
    unit: str
    default: int | str
    help: str
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()

    @property
    def range(self) -> str:
        """The allowed values in words, for messages and the reference."""
        return ", ".join(self.choices) if self.choices else f"{self.low} to {self.high}"

    def problem(self, value: object) -> str | None:
        """None if ``value`` is allowed, else "name: value, rule, fix"."""
        if type(value) is not self.type:
            kind = {int: "an integer", str: "a string"}[self.type]
            return f"{self.name}: {value!r} is not {kind}; give one of: {self.range}"
        if self.choices and value not in self.choices:
            close = difflib.get_close_matches(str(value), self.choices, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"use one of: {self.range}"
            return f"{self.name}: {value!r} is not a choice; {hint}"
        if isinstance(value, int):
            below = self.low is not None and value < self.low
            above = self.high is not None and value > self.high
            if below or above:
                return f"{self.name}: {value} {self.unit} is outside the range {self.range}"
        return None


class Parametrised(Protocol):
    """A fault class: what scenario validation and the reference read."""

    kind: str
    parameters: Sequence[Parameter]


def parameter_problems(fault: Any, given: Mapping[str, object]) -> list[str]:
    """All problems of ``given`` as parameters of the fault class, one line each."""
    table = {parameter.name: parameter for parameter in fault.parameters}
    problems = []
    for name, value in given.items():
        if name in table:
            problem = table[name].problem(value)
            if problem:
                problems.append(problem)
            continue
        close = difflib.get_close_matches(name, table, n=1)
        known = f"known: {', '.join(sorted(table))}" if table else f"{fault.kind} takes none"
        hint = f"did you mean {close[0]!r}?" if close else known
        problems.append(f"{name}: unknown parameter; {hint}")
    return problems


def settle(fault: Any, given: Mapping[str, object]) -> dict[str, Any]:
    """``given`` completed with the defaults; UserError with all problems."""
    problems = parameter_problems(fault, given)
    if problems:
        raise UserError(f"fault {fault.kind!r} has wrong parameters", problems)
    return {parameter.name: parameter.default for parameter in fault.parameters} | dict(given)
