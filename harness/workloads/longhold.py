"""longhold: work that is longer than the lease and renews nothing (K01, K06, K08)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from harness.core.clock import NS_PER_MS
from harness.generator import SectionSpec
from harness.workloads.base import Kind
from nemesis.params import Parameter


class LongHold(Kind):
    """Sections between one lease and ``leases_pct`` of it, whatever ``hold_ms`` says."""

    kind = "longhold"
    says = "sections that outlive their lease, without a renewal"
    shows = "releases and renewals of locks that went to others, beliefs that outlive the lock"
    parameters = (
        Parameter("leases_pct", int, "%", 200, "longest section, in percent of a lease", 110, 1000),
    )

    def shape(self, spec: SectionSpec, params: Mapping[str, Any]) -> SectionSpec:
        lease_ns = spec.ttl_ms * NS_PER_MS
        longest_ns = lease_ns * int(params["leases_pct"]) // 100
        return replace(spec, hold_ns=(lease_ns * 11 // 10, longest_ns), renew_every_ns=None)
