"""Analysis: from a recorded history to results.  The same code for fresh and for stored runs.

Every registered checker runs; one that raises is UNKNOWN with its traceback, never a lost result
and never a pass.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path

from checkers.attach import draw
from clients.sim.node import NODE
from harness.core.history import History
from harness.core.protocols import CheckContext, Checker, FaultWindow, ResourceRecord
from harness.core.result import Result, Valid
from harness.plan import Plan
from harness.plan import load as load_plan
from harness.registries import BACKENDS, CHECKERS, SIM
from harness.scenario import Scenario
from harness.sharing import together_of
from harness.store import (
    ENV,
    PLAN,
    Environment,
    read_faults,
    read_history,
    read_json,
    read_resource,
)
from harness.workloads.registry import WORKLOADS


def context_of(
    scenario: Scenario,
    plan: Plan,
    *,
    faults: Sequence[FaultWindow],
    resource: Sequence[ResourceRecord],
    failures: Sequence[str],
    enforced_deadline: bool,
    has_lease: bool,
    lease_kind: str,
) -> CheckContext:
    """What checkers may know besides the history."""
    kind, mode = WORKLOADS.load(scenario.workload.kind)(), scenario.resource.mode
    return CheckContext(
        ttl_ns=scenario.workload.ttl_ms * 1_000_000 if has_lease else None,
        lease_kind=lease_kind,
        drift_ppm=scenario.run.drift_ppm,
        enforced_deadline=enforced_deadline,
        k=permits_of(scenario),
        workers=scenario.workload.workers,
        together=together_of(scenario),
        servers=servers_of(scenario.backend.name),
        resource_mode="" if mode == "none" or not kind.writes else mode,
        crashes=kind.crashes,
        recovery_ms_max=scenario.run.recovery_ms,
        grant_ms_max=scenario.run.grant_ms,
        belief_lag_ms_max=scenario.run.belief_ms,
        planned_faults=len(plan.faults),
        faults=list(faults),
        resource=list(resource),
        failures=list(failures),
    )


def permits_of(scenario: Scenario) -> int:
    """How many may hold one lock of this scenario at once."""
    kind = WORKLOADS.load(scenario.workload.kind)()
    return int(kind.permits(kind.settle(scenario.workload.params)))


def servers_of(backend: str) -> tuple[str, ...]:
    """Names of the servers that clients of a backend talk to."""
    if backend == SIM:
        return (NODE,)
    return tuple(node.name for node in BACKENDS.load(backend).nodes if node.clients)


def analyse(history: History, context: CheckContext) -> list[Result]:
    """Results of all checkers, in the order of the registry, their first anomalies drawn."""
    results = [_run(CHECKERS.load(name)(), history, context) for name in CHECKERS.names()]
    draw(history, results)
    return results


def _run(checker: Checker, history: History, context: CheckContext) -> Result:
    try:
        return checker.check(history, context)
    except Exception:
        return Result(
            checker=checker.name,
            valid=Valid.UNKNOWN,
            says="the checker itself failed; this is a bug of lockhavoc",
            stats={"traceback": traceback.format_exc()},
            safety=checker.safety,
        )


def load_run(run_dir: Path) -> tuple[Scenario, Plan, Environment, History, CheckContext]:
    """Everything that a stored run holds, ready for ``analyse``."""
    scenario, plan = load_plan(run_dir / PLAN)
    environment = read_json(run_dir / ENV, Environment)
    history, _ = read_history(run_dir)
    context = context_of(
        scenario,
        plan,
        faults=read_faults(run_dir),
        resource=read_resource(run_dir),
        failures=environment.failures,
        enforced_deadline=environment.enforced_deadline,
        has_lease=environment.has_lease,
        lease_kind=environment.lease_kind,
    )
    return scenario, plan, environment, history, context
