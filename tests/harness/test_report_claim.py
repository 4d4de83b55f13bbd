"""The whole decision table of claims against results, and the merging of verdicts."""

from __future__ import annotations

from itertools import product

import pytest

from harness.core.result import Result, Valid
from harness.report.document import ClaimView, Verdicts, judge_claim
from harness.scenario import Claim

T, U, F = Valid.TRUE, Valid.UNKNOWN, Valid.FALSE


def results(**valid: Valid) -> list[Result]:
    return [
        Result(checker=name, valid=found, says=f"{name} says", safety=name != "liveness")
        for name, found in valid.items()
    ]


def judged(claim: str, by: tuple[str, ...] = (), **valid: Valid) -> tuple[str, int]:
    outcome, code, says = judge_claim(
        ClaimView(verdict=claim, by=by),  # type: ignore[arg-type]  # a word of the table below
        results(**valid),
    )
    assert says
    return outcome, code


HOLDS = {
    (): ("unknown", 2),
    (T, T): ("as-claimed", 0),
    (T, U): ("unknown", 2),
    (U, U): ("unknown", 2),
    (T, F): ("violation", 1),
    (U, F): ("violation", 1),
    (F, F): ("violation", 1),
}


@pytest.mark.parametrize(("found", "expected"), HOLDS.items())
def test_holds(found: tuple[Valid, ...], expected: tuple[str, int]) -> None:
    for order in (found, found[::-1]):
        named = dict(zip(("lease", "liveness"), order, strict=False))
        assert judged("holds", **named) == expected


MAY_FAIL = {
    (): ("unknown", 2),
    (T, T): ("as-claimed", 0),
    (T, U): ("unknown", 2),
    (U, U): ("unknown", 2),
    (T, F): ("as-claimed", 0),
    (U, F): ("as-claimed", 0),
    (F, F): ("as-claimed", 0),
}


@pytest.mark.parametrize(("found", "expected"), MAY_FAIL.items())
def test_may_fail(found: tuple[Valid, ...], expected: tuple[str, int]) -> None:
    for order in (found, found[::-1]):
        named = dict(zip(("lease", "exclusion"), order, strict=False))
        assert judged("may-fail", **named) == expected


# fencing is named by the claim, lease is not
VIOLATION_BY = {
    (T, T, T): ("canary-passed", 1),
    (T, U, T): ("canary-passed", 1),  # the doubt is not about what was claimed
    (T, F, T): ("other-than-claimed", 1),
    (U, T, T): ("unknown", 2),
    (U, U, T): ("unknown", 2),
    (U, F, T): ("other-than-claimed", 1),
    (F, T, T): ("as-claimed", 0),
    (F, U, T): ("as-claimed", 0),
    (F, F, T): ("as-claimed", 0),
    (T, T, U): ("unknown", 2),
    (T, U, U): ("unknown", 2),
    (T, F, U): ("other-than-claimed", 1),  # FALSE wins over a vacuous run
    (U, T, U): ("unknown", 2),
    (U, U, U): ("unknown", 2),
    (U, F, U): ("other-than-claimed", 1),
    (F, T, U): ("as-claimed", 0),
    (F, U, U): ("as-claimed", 0),
    (F, F, U): ("as-claimed", 0),
}


def test_the_table_below_is_whole() -> None:
    assert set(VIOLATION_BY) == set(product((T, U, F), (T, U, F), (T, U)))


@pytest.mark.parametrize(("found", "expected"), VIOLATION_BY.items())
def test_violation_by_a_named_checker(
    found: tuple[Valid, Valid, Valid], expected: tuple[str, int]
) -> None:
    fencing, lease, vacuity = found
    by = ("fencing",)
    assert judged("violation", by, fencing=fencing, lease=lease, vacuity=vacuity) == expected


VIOLATION_ANY = {
    (T, T): ("canary-passed", 1),
    (T, U): ("unknown", 2),
    (U, T): ("unknown", 2),
    (F, T): ("as-claimed", 0),
    (F, U): ("as-claimed", 0),
    (): ("unknown", 2),
}


@pytest.mark.parametrize(("found", "expected"), VIOLATION_ANY.items())
def test_violation_by_any(found: tuple[Valid, ...], expected: tuple[str, int]) -> None:
    named = dict(zip(("lease", "vacuity"), found, strict=False))
    assert judged("violation", **named) == expected


def test_one_of_several_named_is_enough() -> None:
    by = ("fencing", "exclusion")
    assert judged("violation", by, fencing=T, exclusion=F) == ("as-claimed", 0)
    assert judged("violation", by, fencing=T, exclusion=T) == ("canary-passed", 1)


def test_a_named_checker_that_did_not_run_is_no_pass() -> None:
    assert judged("violation", ("fencing",), lease=T) == ("unknown", 2)
    assert judged("violation", ("fencing",), lease=F) == ("other-than-claimed", 1)
    assert judged("violation", ("fencing", "lease"), lease=F) == ("as-claimed", 0)


def test_liveness_counts_too() -> None:
    assert judged("holds", lease=T, liveness=F) == ("violation", 1)
    assert judged("violation", ("liveness",), lease=T, liveness=F) == ("as-claimed", 0)


def test_what_does_not_apply_is_left_out_unless_named() -> None:
    off = Result(checker="fencing", valid=U, says="no resource", stats={"applies": False})
    on = Result(checker="lease", valid=T)
    assert judge_claim(ClaimView(verdict="holds"), [on, off])[:2] == ("as-claimed", 0)
    assert judge_claim(ClaimView(verdict="holds"), [off])[:2] == ("unknown", 2)
    named = ClaimView(verdict="violation", by=("fencing",))
    assert judge_claim(named, [on, off])[:2] == ("unknown", 2)


def test_the_sentence_names_the_checkers() -> None:
    assert "lease" in judge_claim(ClaimView(verdict="holds"), results(lease=F))[2]
    says = judge_claim(ClaimView(verdict="holds"), results(vacuity=U))[2]
    assert "vacuity" in says
    assert "vacuity says" in says


def test_a_scenarios_claim_is_a_claim() -> None:
    claim = Claim(verdict="violation", by=("fencing",), why="no fence")
    assert ClaimView.of(claim) == ClaimView(verdict="violation", by=("fencing",), why="no fence")
    assert judge_claim(claim, results(fencing=F))[1] == 0


def test_safety_and_liveness_are_merged_apart() -> None:
    found = Verdicts.of(results(lease=T, fencing=U, liveness=F))
    assert (found.safety, found.liveness) == (U, F)
    assert Verdicts.of([]) == Verdicts(safety=U, liveness=U)
    off = Result(checker="fencing", valid=U, stats={"applies": False})
    assert Verdicts.of([*results(lease=T), off]).safety == T
