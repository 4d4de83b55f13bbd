"""The same faults against servers in containers (needs an Engine and builds images once)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from harness.core import limits
from tests.compose.local import undo_elsewhere
from tests.nemesis.conformance import (
    LASTS,
    assert_all_well,
    make,
    possible,
    put_right,
    targets_of,
    variants_on_servers,
)
from tests.nemesis.worlds import TestWorld, connected, containers_world

pytestmark = [pytest.mark.live, pytest.mark.docker]

BACKENDS = ("redis-single", "valkey-single")
PLACES = [("docker", backend) for backend in BACKENDS]
PLACE = PLACES[0]  # what can be done on one of them can be done on both


@pytest.fixture(scope="module", params=BACKENDS)
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TestWorld]:
    folder = tmp_path_factory.mktemp("docker")
    with containers_world(str(request.param), folder, clocks=True) as here:
        yield here


@pytest.fixture
def world(shared: TestWorld) -> Iterator[TestWorld]:
    with connected(shared):
        yield replace(shared)
        put_right(shared)


@pytest.mark.parametrize(("name", "params"), variants_on_servers(*PLACE))
def test_it_bites_and_heals(world: TestWorld, name: str, params: dict[str, Any]) -> None:
    fault = make(name, params)
    assert fault.can(world) is None
    targets = targets_of(fault, world, everyone=True)
    fault.inject(world, targets)
    evidence = fault.evidence(world, targets)
    assert evidence.bit, evidence.says
    fault.heal(world, targets)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says
    assert_all_well(world)


@pytest.mark.parametrize("name", [n for n in possible(LASTS, *PLACE) if not n.startswith("worker")])
def test_undone_by_another_process_it_is_healed_and_has_no_evidence(
    world: TestWorld, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = make(name)
    targets = targets_of(fault, world)
    steps = fault.undo(world, targets)
    fault.inject(world, targets)
    undo_elsewhere(steps)
    healed = fault.healed(world, targets)
    assert healed.bit, healed.says
    monkeypatch.setattr(limits, "EVIDENCE_TIMEOUT_MS", 200)
    assert not fault.evidence(world, targets).bit
    assert_all_well(world)
