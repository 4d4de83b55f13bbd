"""What a run stands on: clock, cluster, resource and workers, live or simulated.

    with open_stage(scenario, plan, "process", run_dir=run_dir, progress=print) as stage:
        ...                                   # everything answers
    stage.failures                            # what could not be taken down in order

Everything is promised to the ledger before it is created, and whatever the block does, all of it
is gone afterwards: first in order, then by keeping every promise that is still open.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clients import toolchains
from clients.choice import Target
from clients.libraries import Library
from clients.sim.world import build
from harness.core.clock import Clock, MonotonicClock
from harness.core.errors import LockhavocError, RefusedError
from harness.core.messages import WorkerPool
from harness.core.protocols import ClockShimmed, Cluster, ResourceRecord, Runtime
from harness.core.undo import kill_marked_step
from harness.interrupts import held_back
from harness.ledger import FileLedger
from harness.plan import Plan
from harness.registries import FAULTS, LIBRARIES, RUNTIMES, SIM
from harness.resource import LiveResource, NoResource, Resource, SimulatedResource
from harness.scenario import Scenario
from harness.shared_pool import SharedPool
from harness.sharing import sharing_of
from harness.store import Environment
from harness.workers import ProcessPool

Progress = Callable[[str], None]


class Stage:
    """The surroundings of one run."""

    def __init__(
        self,
        *,
        runtime: str,
        backend: str,
        clock: Clock,
        cluster: Cluster,
        pool: WorkerPool,
        resource: Resource,
        ledger: FileLedger,
        lease: str,
        options: Mapping[str, Any],
        threaded: bool,
        sharing: Mapping[str, Any] | None = None,
    ) -> None:
        self.runtime, self.backend = runtime, backend
        self.clock, self.cluster, self.pool, self.ledger = clock, cluster, pool, ledger
        self.threaded, self.lease = threaded, lease
        self.failures: list[str] = []
        self.versions: dict[str, str] = dict(cluster.versions)
        self._resource = resource
        self._options = dict(options)
        self._sharing = sharing

    @property
    def sessions(self) -> Sequence[dict[str, Any]]:
        """What each worker's ``open`` request carries."""
        shared = {} if self._sharing is None else {"sharing": dict(self._sharing)}
        together = 1 if self._sharing is None else int(self._sharing["together"])
        # Users of one process come by the links of the first of them.
        return [
            {
                "nodes": nodes_of(self.cluster.endpoints(first), first),
                "options": self._options,
                "resource": self._resource.place(),
                **shared,
            }
            for first in (w - w % together for w in range(len(self.pool.handles)))
        ]

    def greet(self, hellos: Mapping[int, Mapping[str, Any]], environment: Environment) -> None:
        """Takes versions and lease from what the workers said of themselves."""
        for hello in hellos.values():
            # The redis of a server and the redis of a client are two things.
            for name, version in hello.get("versions", {}).items():
                self.versions[f"client {name}"] = version
            lease = hello.get("lease", {})
            environment.lease_kind = str(lease.get("kind", "ttl"))
            environment.has_lease = environment.lease_kind == "ttl"
            environment.enforced_deadline = bool(lease.get("enforced", False))
        environment.versions = dict(self.versions)

    def export_resource(self, start_ns: int) -> list[ResourceRecord]:
        """What the resource recorded, times since the start of the run."""
        return self._resource.export(start_ns)


def nodes_of(endpoints: Sequence[Mapping[str, Any]], worker: int) -> list[dict[str, Any]]:
    """The endpoints of a worker, one of them its ``own``: the one to prefer if its library talks
    to one alone.  Worker i has node i (modulo their number), so clients stand on all sides of a
    partition."""
    return [{**end, "own": at == worker % len(endpoints)} for at, end in enumerate(endpoints)]


@contextmanager
def open_stage(
    scenario: Scenario,
    plan: Plan,
    runtime: str,
    target: Target | None,
    *,
    run_dir: Path,
    progress: Progress,
) -> Iterator[Stage]:
    """Brings everything up; takes everything down at the end, whatever happened.

    target: the library under test; None in the simulator.
    """
    opening = (
        _open_sim(scenario, plan, run_dir)
        if target is None
        else _open_live(scenario, plan, runtime, target, run_dir, progress)
    )
    with opening as stage:
        yield stage


@contextmanager
def _open_live(
    scenario: Scenario,
    plan: Plan,
    runtime: str,
    target: Target,
    run_dir: Path,
    progress: Progress,
) -> Iterator[Stage]:
    live: Runtime = RUNTIMES.load(runtime)()
    reason = live.can(scenario.backend.name)
    if reason:
        raise RefusedError(f"backend {scenario.backend.name!r} cannot run here", [reason])
    shim = _clock_shim(plan, target.library)
    if isinstance(live, ClockShimmed):
        live.clock_shim = shim
    clock = MonotonicClock()
    ledger = FileLedger(run_dir, clock, start_ns=clock.now())
    mark = uuid.uuid4().hex
    teardown = _Teardown(ledger)
    try:
        ledger.promise([kill_marked_step(mark)], why="processes of this run")
        workers = scenario.workload.workers
        progress(f"starting {scenario.backend.name} ({runtime})")
        cluster = live.up(
            scenario.backend.name,
            scenario.backend.options,
            workers=workers,
            run_dir=run_dir,
            ledger=ledger,
        )
        teardown.add("cluster", cluster.down)
        teardown.add("logs", lambda: cluster.collect_logs(run_dir / "nodes"))
        resource: Resource = NoResource()
        if scenario.resource.mode != "none":
            resource = LiveResource(run_dir, scenario.resource.mode, mark)
        teardown.add("resource", resource.close)
        argv = target.library.command(target.python)
        sharing = sharing_of(scenario)
        pool = _pool(argv, scenario, sharing, run_dir / "workers", mark, shim)
        teardown.add("workers", pool.close)
        stage = Stage(
            runtime=runtime,
            backend=scenario.backend.name,
            clock=clock,
            cluster=cluster,
            pool=pool,
            resource=resource,
            ledger=ledger,
            lease=target.library.lease,
            options=scenario.client.options,
            threaded=True,
            sharing=sharing,
        )
        teardown.failures = stage.failures
        yield stage
    finally:
        with held_back():
            teardown.run()


def _pool(
    argv: Sequence[str],
    scenario: Scenario,
    sharing: Mapping[str, Any] | None,
    log_dir: Path,
    mark: str,
    shim: Path | None,
) -> WorkerPool:
    """A process for each worker, or one for so many as the workload puts together."""
    workers = scenario.workload.workers
    together = 1 if sharing is None else int(sharing["together"])
    processes = ProcessPool(
        argv, workers=workers // together, log_dir=log_dir, mark=mark, clock_shim=shim,
        users=together,
    )  # fmt: skip
    if sharing is None:
        return processes
    return SharedPool(processes, workers=workers, together=together)


def _clock_shim(plan: Plan, library: Library) -> Path | None:
    """The shim, if any fault of the plan needs it: then all run under it, else nobody does."""
    for step in plan.faults:
        fault = FAULTS.load(step.kind)
        if getattr(fault, "needs_clock_shim", False) and fault.acts_on == "worker":
            reason = toolchains.clock_refused(library)
            if reason:
                raise RefusedError(f"fault {step.kind!r} cannot be done", [reason])
    if not any(getattr(FAULTS.load(step.kind), "needs_clock_shim", False) for step in plan.faults):
        return None
    from nemesis.clockshim import build as shim

    return shim.ensure()


class _Teardown:
    """Steps that run last to first, all of them, each failure noted; then the ledger's rest."""

    def __init__(self, ledger: FileLedger) -> None:
        self.failures: list[str] = []
        self._ledger = ledger
        self._steps: list[tuple[str, Callable[[], object]]] = []

    def add(self, name: str, step: Callable[[], object]) -> None:
        self._steps.append((name, step))

    def run(self) -> None:
        for name, step in reversed(self._steps):
            try:
                step()
            except (LockhavocError, OSError) as error:
                self.failures.append(f"teardown of {name}: {error}")
        self.failures += self._ledger.keep_all()
        self._ledger.close()


@contextmanager
def _open_sim(scenario: Scenario, plan: Plan, run_dir: Path) -> Iterator[Stage]:
    setup = build(
        scenario.client.library,
        workers=scenario.workload.workers,
        seed=plan.seed,
        resource_mode=scenario.resource.mode,
        options=scenario.backend.options,
    )
    ledger = FileLedger(run_dir, setup.clock, durable=False)
    try:
        yield Stage(
            runtime=SIM,
            backend=SIM,
            clock=setup.clock,
            cluster=setup.cluster,
            pool=setup.pool,
            resource=NoResource() if setup.resource is None else SimulatedResource(setup.resource),
            ledger=ledger,
            lease=LIBRARIES.load(scenario.client.library).lease,
            options=scenario.client.options,
            threaded=False,
        )
    finally:
        setup.pool.close()
        ledger.close()
