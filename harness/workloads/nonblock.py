"""nonblock: try-lock polling; nobody waits at the server (K04, K17)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from harness.core.clock import NS_PER_MS
from harness.generator import SectionSpec
from harness.workloads.base import Kind
from nemesis.params import Parameter


class NonBlock(Kind):
    """One try, then a pause of about ``retry_ms``."""

    kind = "nonblock"
    says = "tries once, and again after a pause"
    shows = "refusals that leave an entry behind, sections entered without the lock"
    parameters = (Parameter("retry_ms", int, "ms", 20, "pause before the next try", 1, 60_000),)

    def shape(self, spec: SectionSpec, params: Mapping[str, Any]) -> SectionSpec:
        pause_ns = int(params["retry_ms"]) * NS_PER_MS
        return replace(spec, timeout_ms=0, idle_ns=(pause_ns // 2, pause_ns * 3 // 2))
