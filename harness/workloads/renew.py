"""renew: work of several leases that is kept up by renewals (K07)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from harness.core.clock import NS_PER_MS
from harness.generator import SectionSpec
from harness.workloads.base import Kind
from nemesis.params import Parameter


class Renew(Kind):
    """Sections of ``leases`` leases, renewed ``per_lease`` times in each."""

    kind = "renew"
    says = "sections of several leases, kept up by renewals"
    shows = "renewals that do not prolong, that bring back a lost lock, or that come too late"
    parameters = (
        Parameter("leases", int, "leases", 3, "length of a section", 1, 100),
        Parameter("per_lease", int, "renewals", 3, "renewals in each lease", 2, 100),
    )

    def shape(self, spec: SectionSpec, params: Mapping[str, Any]) -> SectionSpec:
        lease_ns = spec.ttl_ms * NS_PER_MS
        longest_ns = lease_ns * int(params["leases"])
        return replace(
            spec,
            hold_ns=(longest_ns * 9 // 10, longest_ns),
            renew_every_ns=lease_ns // int(params["per_lease"]),
        )
