"""elect: one leads for a while, writes at every beat, then hands over (K07, K08, K22)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from harness.core.clock import NS_PER_MS
from harness.generator import SectionSpec
from harness.workloads.base import Kind
from nemesis.params import Parameter


class Elect(Kind):
    """Terms of about ``term_ms`` with a write at every ``beat_ms``; ``renew_every_ms`` keeps it."""

    kind = "elect"
    says = "a role held for a term, a write at every beat, then a hand-over"
    shows = "two leaders, a leader that does not hear of its end, a late hand-over"
    parameters = (
        Parameter("term_ms", int, "ms", 2000, "length of a term", 10, 3_600_000),
        Parameter("beat_ms", int, "ms", 200, "between two writes of a leader", 1, 3_600_000),
    )

    def shape(self, spec: SectionSpec, params: Mapping[str, Any]) -> SectionSpec:
        term_ns, beat_ns = (int(params[name]) * NS_PER_MS for name in ("term_ms", "beat_ms"))
        return replace(
            spec,
            hold_ns=(term_ns * 8 // 10, term_ns),
            beat_ns=beat_ns,
            writes=max(1, term_ns // beat_ns),
        )
