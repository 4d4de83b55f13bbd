"""Every monitor against the table of examples with known verdicts.

Witnesses are small: a violation names at most a handful of events, and what would make it legal.
"""

from __future__ import annotations

import pytest

from checkers.monitors import MONITORS
from harness.core.result import Valid
from tests.checkers.examples import EXAMPLES, NAMES, Row, intervals


@pytest.mark.parametrize("row", EXAMPLES, ids=NAMES)
def test_monitor_says_what_the_table_says(row: Row) -> None:
    name, model, options, _, legal = row
    verdict = MONITORS[model](intervals(row), **options)
    if verdict.valid is Valid.UNKNOWN:
        assert name == "C7", verdict.why  # an observation: the general engine decides
        return
    assert verdict.valid is (Valid.TRUE if legal else Valid.FALSE), verdict.says
    if not legal:
        assert 1 <= len(verdict.ops) <= 6
        assert verdict.anomalies[0].legal_if


def test_every_family_has_examples() -> None:
    assert len(EXAMPLES) >= 47
    assert {row[1] for row in EXAMPLES} == set(MONITORS) - {"belief", "register"}
