"""cancel: waiters that lose patience while their request is under way (K16, K17)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from harness.generator import SectionSpec
from harness.workloads.base import Kind
from nemesis.params import Parameter


class Cancel(Kind):
    """Each attempt waits for a drawn time of at most ``patience_ms``, then gives up."""

    kind = "cancel"
    says = "waiters give up after a short time that the seed draws anew for each attempt"
    shows = "entries of waiters that have gone, locks granted to nobody"
    parameters = (Parameter("patience_ms", int, "ms", 60, "longest wait of an attempt", 1, 60_000),)

    def shape(self, spec: SectionSpec, params: Mapping[str, Any]) -> SectionSpec:
        return replace(spec, patience_ms=(1, int(params["patience_ms"])))
