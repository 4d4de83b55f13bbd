"""Parameters of faults as data."""

from __future__ import annotations

import pytest

from harness.core.errors import UserError
from nemesis.latency import Latency
from nemesis.params import parameter_problems, settle
from nemesis.registry import FAULTS
from nemesis.sever import Sever


@pytest.mark.parametrize("name", FAULTS.names())
def test_every_fault_describes_itself(name: str) -> None:
    fault = FAULTS.load(name)
    assert fault.kind == name
    assert fault.acts_on in ("worker", "node", "link")
    assert len(fault.summary) > 20
    for parameter in fault.parameters:
        assert parameter.problem(parameter.default) is None
        assert parameter.help
        assert parameter.range
        assert bool(parameter.choices) == (parameter.type is str)
    assert fault().params == {p.name: p.default for p in fault.parameters}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"latncy_ms": 5}, "latncy_ms: unknown parameter; did you mean 'latency_ms'?"),
        ({"zzz": 5}, "zzz: unknown parameter; known: direction, latency_ms"),
        ({"latency_ms": 0}, "latency_ms: 0 ms is outside the range 1 to 60000"),
        ({"latency_ms": 60_001}, "latency_ms: 60001 ms is outside the range 1 to 60000"),
        ({"latency_ms": True}, "latency_ms: True is not an integer; give one of: 1 to 60000"),
        ({"latency_ms": 5.0}, "latency_ms: 5.0 is not an integer; give one of: 1 to 60000"),
        (
            {"direction": "upstrem"},
            "direction: 'upstrem' is not a choice; did you mean 'upstream'?",
        ),
        (
            {"direction": 3},
            "direction: 3 is not a string; give one of: upstream, downstream, both",
        ),
    ],
)
def test_a_problem_names_parameter_value_rule_and_fix(
    given: dict[str, object], problem: str
) -> None:
    assert parameter_problems(Latency, given) == [problem]


def test_edges_of_the_range_are_allowed() -> None:
    assert parameter_problems(Latency, {"latency_ms": 1}) == []
    assert parameter_problems(Latency, {"latency_ms": 60_000, "direction": "both"}) == []


def test_all_problems_at_once() -> None:
    with pytest.raises(UserError, match="fault 'latency'") as caught:
        Latency(latency_ms=-1, direction="sideways", jitter=3)
    assert len(caught.value.problems) == 3


def test_a_fault_without_parameters_says_so() -> None:
    assert parameter_problems(Sever, {"x": 1}) == ["x: unknown parameter; sever takes none"]
    assert settle(Sever, {}) == {}
