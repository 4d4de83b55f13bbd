"""Where faults would act, known before anything starts, and which of them cannot act there."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.core.protocols import Place
from harness.plan import FaultStep
from harness.registries import FAULTS, has_peers
from nemesis.params import settle
from nemesis.targets import between_nodes


class Here(msgspec.Struct, frozen=True):
    """A place by its names alone (harness.core.protocols.Place)."""

    runtime: str
    backend: str

    @property
    def peers(self) -> bool:
        return has_peers(self.backend)


def refusals(steps: Sequence[FaultStep], place: Place) -> list[str]:
    """Why some of these faults cannot be done here (empty: all can); asked before any acts."""
    reasons: dict[str, str] = {}
    for step in steps:
        fault_class = FAULTS.load(step.kind)
        reason = fault_class(**settle(fault_class, step.params)).can(place)
        if reason is None and between_nodes(step.target):
            reason = _no_links_between(step, place)
        if reason:
            reasons[step.kind] = reason
    return [f"{kind}: {reason}" for kind, reason in reasons.items()]


def _no_links_between(step: FaultStep, place: Place) -> str | None:
    if not place.peers:
        return f"target {step.target!r}: nodes of {place.backend!r} do not talk to each other"
    if place.runtime != "docker":
        return f"target {step.target!r}: only in containers has each way between nodes a proxy"
    if not getattr(FAULTS.load(step.kind), "between_nodes", False):
        return f"target {step.target!r}: this fault proves itself by what clients ask for"
    return None
