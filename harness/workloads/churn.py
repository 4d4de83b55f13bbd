"""churn: short holds and at once the next try, so that all wait all the time (K20, K21, K22)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from harness.core.clock import NS_PER_MS
from harness.generator import SectionSpec
from harness.workloads.base import Kind
from nemesis.params import Parameter


class Churn(Kind):
    """Sections of at most ``hold_ms``, no pause between them."""

    kind = "churn"
    says = "very short sections and no pause between them"
    shows = "lost wake-ups, stuck waiters, unfair locks, herds of retries"
    parameters = (Parameter("hold_ms", int, "ms", 2, "longest section", 0, 1000),)

    def shape(self, spec: SectionSpec, params: Mapping[str, Any]) -> SectionSpec:
        return replace(spec, hold_ns=(0, int(params["hold_ms"]) * NS_PER_MS), idle_ns=(0, 0))
