"""What a workload is: a name, parameters, and one pure generator per worker.

    class LongHold(Kind):
        kind = "longhold"
        parameters = (Parameter("leases_pct", int, "%", 150, "...", 101, 1000),)

        def shape(self, spec, params):
            return replace(spec, hold_ns=...)

Most workloads are critical sections with other times, so they only ``shape`` the spec; the rest
bring a ``leaf`` of their own, a small state machine like ``generator.Section``.

Trap: a generator is a value.  It must draw with ``generator.draw`` (seed, worker, number), never
from a random object, and must come to its end once ``until_ns`` is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.core.errors import UserError
from harness.generator import Generator, Section, SectionSpec
from nemesis.params import Parameter, parameter_problems


class Kind:
    """A workload.  says: what the workers do.  shows: which failures come out by it."""

    kind = ""
    says = ""
    shows = ""
    needs: str = ""
    """Power that the library must have ("read", "permits")."""
    writes: bool = True
    """Whether its sections write to the protected resource."""
    crashes: bool = False
    """Whether workers die by its doing."""
    parameters: Sequence[Parameter] = ()

    def shape(self, spec: SectionSpec, params: Mapping[str, Any]) -> SectionSpec:
        """The spec of its critical sections, from that of the scenario."""
        return spec

    def leaf(
        self, spec: SectionSpec, params: Mapping[str, Any], *, worker: int, until_ns: int
    ) -> Generator:
        """The generator of one worker; new sections begin before ``until_ns``."""
        return Section.of(self.shape(spec, params), worker=worker, until_ns=until_ns)

    def probe(self, spec: SectionSpec, params: Mapping[str, Any]) -> SectionSpec:
        """The spec of the section that each worker tries when all faults are over."""
        return spec

    def permits(self, params: Mapping[str, Any]) -> int:
        """How many may hold a lock at once."""
        return 1

    def misfits(self, params: Mapping[str, Any], *, workers: int, keys: int) -> list[str]:
        """What does not fit the number of workers and locks, one line each ("k: ...")."""
        return []

    def sharing(self, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """How workers are users of one process (``sharing`` of a worker's ``open``, see
        clients/worker/users.py); None: each is a process of its own."""
        return None

    def longest_ns(self, spec: SectionSpec, params: Mapping[str, Any]) -> int:
        """How long a section works at most, so that a run waits for it to end."""
        return self.shape(spec, params).hold_ns[1]

    def problems(self, given: Mapping[str, object]) -> list[str]:
        """What is wrong with parameters, one line each."""
        return parameter_problems(self, given)

    def settle(self, given: Mapping[str, object]) -> dict[str, Any]:
        """Parameters completed with the defaults; UserError with all problems."""
        found = self.problems(given)
        if found:
            raise UserError(f"workload {self.kind!r} has wrong parameters", found)
        return {one.name: one.default for one in self.parameters} | dict(given)
