"""semaphore: k permits, so that k clients may be inside at once and not one more.

Sections hold a permit, work and give it back; nobody writes, since nobody is alone.  What can go
wrong is seen from the answers: more than k permits out at once, or a permit that is out although
nobody can have it (leaked), which shows as waiters that wait while there is room.

Trap: with as many workers as permits nobody ever waits, and nothing is shown; such a scenario is
refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from harness.generator import SectionSpec
from harness.workloads.base import Kind
from nemesis.params import Parameter


class Semaphore(Kind):
    """Sections under one of ``k`` permits."""

    kind = "semaphore"
    says = "sections that hold one of k permits; nobody writes, since nobody is alone"
    shows = "more than k inside at once, permits that leak when their holders die"
    needs = "permits"
    writes = False
    parameters = (Parameter("k", int, "permits", 2, "that the semaphore has", 2, 1000),)

    def shape(self, spec: SectionSpec, params: Mapping[str, Any]) -> SectionSpec:
        return replace(spec, k=int(params["k"]), writes=0, read_first=False)

    def probe(self, spec: SectionSpec, params: Mapping[str, Any]) -> SectionSpec:
        return self.shape(spec, params)

    def permits(self, params: Mapping[str, Any]) -> int:
        return int(params["k"])

    def misfits(self, params: Mapping[str, Any], *, workers: int, keys: int) -> list[str]:
        k = int(params["k"])
        if workers <= k * keys:
            what = "permits" if keys == 1 else f"permits of each of {keys} locks"
            return [f"k: {k} {what} for {workers} workers: nobody would ever wait; use fewer"]
        return []
