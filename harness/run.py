"""The life of a run, as one script of nested steps.

    directory -> ledger -> cluster, resource, workers -> save -> operations and faults
      -> heal, final phase -> save -> logs, teardown -> analysis -> save -> report

Whatever happens on the way, what was created is removed and what was recorded is kept: a failing
heal, log copy or teardown is an entry in the result, never a reason to skip the analysis.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from clients.choice import Target
from harness import store
from harness.check import analyse, context_of, load_run, permits_of
from harness.core.clock import NS_PER_MS
from harness.core.errors import HarnessError, RefusedError
from harness.core.history import Header, History
from harness.core.protocols import ResourceRecord
from harness.generator import EachWorker, Section, SectionSpec, ns_span
from harness.interpreter import Interpreter, worker_start_deadline_ns
from harness.interrupts import Interrupted, held_back
from harness.journal import FILE as HISTORY_FILE
from harness.journal import Journal
from harness.library_choice import settle_for
from harness.liveview import LiveView
from harness.nemesis_runner import NemesisRunner, World
from harness.places import Here, refusals
from harness.plan import Plan, dump, plan_for
from harness.registries import SIM
from harness.report.document import RunReport
from harness.report.live import PLAIN_EVERY_NS, SCREEN_EVERY_NS, Held, Moment, Screen, line
from harness.scenario import Scenario
from harness.stage import Stage, open_stage
from harness.summary import make_report, write_reports
from harness.workloads.registry import WORKLOADS

PROBE_SLACK_MS = 500  # a polling acquire gives up early; a probe must outlast the bound
SLACK_MS = 5_000  # beyond all waits of the scenario, before operations are given up as unknown

Progress = Callable[[str], None]


@dataclass
class Recorded:
    """What a run left: the part that analysis needs."""

    history: History
    resource: list[ResourceRecord] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    interrupted: bool = False


def execute(
    scenario: Scenario,
    plan: Plan,
    *,
    source: str,
    runtime: str,
    store_dir: Path,
    argv: Sequence[str],
    replay: Sequence[str],
    progress: Progress,
) -> RunReport:
    """Runs and judges a plan; the directory holds everything but the reports.

    RefusedError, before anything is made, if a fault cannot be done in this runtime.
    """
    began = time.monotonic()
    backend = SIM if runtime == SIM else scenario.backend.name
    reasons = refusals(plan.faults, Here(runtime, backend))
    if reasons:
        raise RefusedError(f"scenario {scenario.name!r} cannot run here", reasons)
    scenario, target = settle_for(scenario, runtime, progress=progress)
    plan = plan_for(scenario, plan)
    run_dir = store.create(store_dir, scenario.name)
    progress(f"run {run_dir}  seed {plan.seed}  runtime {runtime}")
    store.write(run_dir / "scenario.toml", source)
    store.write(run_dir / store.PLAN, dump(plan))
    environment = store.environment(argv=argv, replay=replay, runtime=runtime, versions={})
    environment.client = dict(target.record) if target else {}
    store.write_json(run_dir / store.ENV, environment)

    recorded = _record(scenario, plan, runtime, target, run_dir, environment, progress)

    environment.failures = recorded.failures
    environment.duration_ms = round((time.monotonic() - began) * 1000)
    store.write_json(run_dir / store.ENV, environment)
    progress(f"judging {len(recorded.history)} events")
    context = context_of(
        scenario,
        plan,
        faults=store.read_faults(run_dir),
        resource=recorded.resource,
        failures=recorded.failures,
        enforced_deadline=environment.enforced_deadline,
        has_lease=environment.has_lease,
        lease_kind=environment.lease_kind,
    )
    results = analyse(recorded.history, context)
    return make_report(
        scenario,
        plan,
        environment,
        run_dir=run_dir,
        history=recorded.history,
        context=context,
        results=results,
        interrupted=recorded.interrupted,
    )


def publish(report: RunReport, store_dir: Path) -> None:
    """Writes the reports of a run into its directory and points ``latest`` at it."""
    run_dir = Path(report.run_dir)
    write_reports(run_dir, report, lambda: load_run(run_dir)[3:])
    store.finished(store_dir, run_dir)


def _record(
    scenario: Scenario,
    plan: Plan,
    runtime: str,
    target: Target | None,
    run_dir: Path,
    environment: store.Environment,
    progress: Progress,
) -> Recorded:
    """Brings everything up, runs, and takes everything down again; the history stays on disk."""
    recorded = Recorded(History([]))
    try:
        with open_stage(
            scenario, plan, runtime, target, run_dir=run_dir, progress=progress
        ) as stage:
            environment.versions = dict(stage.versions)
            _operate(scenario, plan, stage, run_dir, environment, recorded, progress)
        recorded.failures += stage.failures
    except Interrupted as interrupted:
        recorded.interrupted = True
        recorded.failures.append(str(interrupted))
    except RefusedError:
        raise
    except HarnessError as error:
        recorded.failures.append(str(error))
    if len(recorded.history) == 0 and (run_dir / HISTORY_FILE).exists():
        # The phase was cut short: take what the journal holds.
        recorded.history, environment.loose_stamps = store.read_history(run_dir)
    return recorded


def _operate(
    scenario: Scenario,
    plan: Plan,
    stage: Stage,
    run_dir: Path,
    environment: store.Environment,
    recorded: Recorded,
    progress: Progress,
) -> None:
    """The operations of a run on a stage that stands."""
    view = LiveView()
    leased = stage.lease == "ttl"
    header = Header(
        name=scenario.name,
        seed=plan.seed,
        scenario=scenario.digest(),
        versions=dict(stage.versions),
        ttl_ns=scenario.workload.ttl_ms * NS_PER_MS if leased else None,
        k=permits if (permits := permits_of(scenario)) > 1 else None,
    )
    world = World(
        clock=stage.clock,
        cluster=stage.cluster,
        workers=stage.pool.handles,
        view=view,
        runtime=stage.runtime,
        backend=stage.backend,
    )
    with _journal(run_dir, header) as journal:
        nemesis = NemesisRunner(
            world=world,
            view=view,
            steps=plan.faults,
            seed=plan.seed,
            ledger=stage.ledger,
            journal=journal,
            clock=stage.clock,
            start_ns=stage.clock.now(),
            wake=stage.pool.wake,
            threaded=stage.threaded,
        )
        interpreter = Interpreter(
            clock=stage.clock,
            start_ns=stage.clock.now(),
            pool=stage.pool,
            journal=journal,
            view=view,
            nemesis=nemesis,
            sessions=stage.sessions,
            on_turn=_turns(progress, scenario, environment, journal, nemesis, view),
            turn_every_ns=SCREEN_EVERY_NS if isinstance(progress, Screen) else PLAIN_EVERY_NS,
            leased=leased,
        )
        try:
            _phases(scenario, plan, stage, interpreter, nemesis, environment, run_dir)
        finally:
            # A second Ctrl-C must not tear the end of the history or the teardown apart.
            with held_back():
                nemesis.join(2.0)
                recorded.failures += interpreter.failures + nemesis.failures
                recorded.resource = stage.export_resource(environment.start_ns)
                store.write_lines(run_dir / store.RESOURCE, recorded.resource)
                journal.flush()
                recorded.history, environment.loose_stamps = store.finish_history(
                    run_dir, header, journal.ops
                )


def _phases(
    scenario: Scenario,
    plan: Plan,
    stage: Stage,
    interpreter: Interpreter,
    nemesis: NemesisRunner,
    environment: store.Environment,
    run_dir: Path,
) -> None:
    """Sessions, main phase, heal, final phase."""
    interpreter.open_all(worker_start_deadline_ns(interpreter.now()))
    if interpreter.failures:
        raise HarnessError("; ".join(interpreter.failures))
    stage.greet(interpreter.hellos, environment)
    start_ns = stage.clock.now()
    environment.start_ns = interpreter.start_ns = start_ns
    nemesis.begin(start_ns)
    stage.ledger.start_ns = start_ns
    store.write_json(run_dir / store.ENV, environment)  # save 0

    workload, limits = scenario.workload, scenario.run
    workers = range(workload.workers)
    spec = section_spec(scenario, plan.seed)
    kind = WORKLOADS.load(workload.kind)()
    params, until_ns = kind.settle(workload.params), limits.time_ms * NS_PER_MS
    main = EachWorker(tuple(kind.leaf(spec, params, worker=w, until_ns=until_ns) for w in workers))
    longest_hold_ms = kind.longest_ns(spec, params) // NS_PER_MS
    wait_ms = workload.acquire_timeout_ms + longest_hold_ms + SLACK_MS
    longest_ms = max((step.duration_ms for step in plan.faults), default=0)
    interpreter.run(main, deadline_ns=(limits.time_ms + wait_ms + longest_ms) * NS_PER_MS)
    nemesis.heal_all(interpreter.drain)

    probes = kind.probe(section_spec(scenario, plan.seed, final=True), params)
    begin_ns = interpreter.now()
    final = EachWorker(
        tuple(Section.of(probes, worker=w, sections=1, start_ns=begin_ns) for w in workers)
    )
    final_ms = (
        limits.recovery_ms + PROBE_SLACK_MS + workload.ttl_ms + workload.hold_ms[1] + SLACK_MS
    )
    interpreter.run(final, deadline_ns=begin_ns + final_ms * NS_PER_MS)


def section_spec(scenario: Scenario, seed: int, *, final: bool = False) -> SectionSpec:
    """The workload of a scenario; the final phase probes once per worker, without idling."""
    workload = scenario.workload
    renew_ms = workload.renew_every_ms
    probe_ms = scenario.run.recovery_ms + PROBE_SLACK_MS
    return SectionSpec(
        seed=seed,
        keys=workload.keys,
        ttl_ms=workload.ttl_ms,
        timeout_ms=probe_ms if final else workload.acquire_timeout_ms,
        hold_ns=ns_span((0, 0) if final else workload.hold_ms),
        idle_ns=ns_span((0, 0) if final else workload.idle_ms),
        renew_every_ns=None if final or renew_ms is None else renew_ms * NS_PER_MS,
        writes=0 if scenario.resource.mode == "none" else workload.writes,
        read_first=scenario.resource.mode == "cas",
        name="final-" if final else "",
    )


@contextmanager
def _journal(run_dir: Path, header: Header) -> Iterator[Journal]:
    journal = Journal(run_dir / HISTORY_FILE, header)
    try:
        yield journal
    finally:
        journal.close()


def _turns(
    progress: Progress,
    scenario: Scenario,
    environment: store.Environment,
    journal: Journal,
    nemesis: NemesisRunner,
    view: LiveView,
) -> Callable[[int], None]:
    """What to show now and then: one line, or the moment on a terminal."""

    def on_turn(now_ns: int) -> None:
        start_ns = environment.start_ns
        moment = Moment(
            name=scenario.name,
            now_ns=now_ns,
            until_ns=scenario.run.time_ms * NS_PER_MS,
            events=len(journal.ops),
            holds=[
                Held(
                    hold.worker,
                    hold.key,
                    hold.granted_ns - start_ns,
                    None if hold.expires_ns is None else hold.expires_ns - start_ns,
                )
                for hold in view.holds()
            ],
            waiting=view.waiters(),
            faults=nemesis.status(),
            harmed=not nemesis.is_idle(),
        )
        if isinstance(progress, Screen):
            progress.show(moment)
        elif now_ns:
            progress(line(moment))

    return on_turn
