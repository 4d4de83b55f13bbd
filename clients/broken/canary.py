"""What is known of a canary: which mistake it makes, who must catch it, and what brings it out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Canary(NamedTuple):
    """Facts of one canary.

    kind: the kind of failure (K01 ...).  checker: the one that must find it.  says: the harm in
    one sentence.  workload, faults, resource: the parts of a scenario, in its own words, under
    which the mistake shows; ``needs`` says in words what they bring about.
    """

    kind: str
    checker: str
    says: str
    needs: str
    workload: Mapping[str, Any]
    faults: Sequence[Mapping[str, Any]]
    resource: str = "unfenced"


CONTENDED: Mapping[str, Any] = {
    "workers": 4,
    "ttl_ms": 200,
    "hold_ms": [20, 60],
    "idle_ms": [0, 5],
    "acquire_timeout_ms": 2000,
}
"""A lock that is nearly always held, with a lease that faults can outlast soon."""

PAUSE_PAST_TTL: Mapping[str, Any] = {
    "kind": "worker-pause",
    "target": "holder",
    "when": "held",
    "start_ms": [200, 400],
    "every_ms": [200, 400],
    "count": 5,
    "duration_ms": [260, 320],
}
"""Holders that sleep through the end of their lease while others take over."""
