"""update: read, work, write: each section builds on what the one before it wrote (K15, K25)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from harness.generator import SectionSpec
from harness.workloads.base import Kind


class Update(Kind):
    """A read when the work begins, and at its end the write that depends on it."""

    kind = "update"
    says = "sections that read the resource before they write to it"
    shows = "lost updates: a write that has not seen the one before it"

    def shape(self, spec: SectionSpec, params: Mapping[str, Any]) -> SectionSpec:
        return replace(spec, read_early=True)
