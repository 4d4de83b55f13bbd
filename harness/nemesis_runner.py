"""Carries out the plan's faults: arm, wait for the moment, inject, prove, heal, prove again.

The interpreter calls ``tick`` each turn.  A step is *armed* when its time has come, *fires* when
its moment has come (``when``) and somebody matches its target, and *heals* after its duration.
The work itself (signals, HTTP calls, waiting for evidence) runs in threads, so that the loop
keeps receiving completions; in virtual time it runs in the loop, which costs nothing.

Order of every injection, never changed: undo steps to the ledger (on disk), inject, evidence.
An aimed step makes its promise while it waits, for everything it might hit: writing to disk takes
longer than some moments last.
Request and return times are both recorded; a checker sees the widest window.
"""

from __future__ import annotations

import queue
import random
import threading
import traceback
from collections.abc import Callable, Sequence

import msgspec

from harness.core.clock import NS_PER_MS, Clock
from harness.core.errors import LockhavocError
from harness.core.protocols import Cluster, Fault, FaultWindow, View, WorkerHandle
from harness.core.rng import stream
from harness.core.undo import Step as UndoStep
from harness.journal import Journal
from harness.ledger import FileLedger
from harness.liveview import LiveView
from harness.plan import FaultStep
from harness.registries import FAULTS, has_peers
from nemesis.params import settle
from nemesis.targets import resolve

FRESH_NS = 10 * NS_PER_MS  # "held" means: just granted, so that the whole section is ahead
HEAL_WAIT_S = 60.0  # Engine and server restarts on a busy machine; then it counts as failed


class AimedView:
    """The live view narrowed to the workers that a moment is about."""

    def __init__(
        self, holders: Sequence[int], waiters: Sequence[int], granters: Sequence[str]
    ) -> None:
        self._holders, self._waiters, self._granters = holders, waiters, granters

    def holders(self) -> Sequence[int]:
        return self._holders

    def waiters(self) -> Sequence[int]:
        return self._waiters

    def granters(self) -> Sequence[str]:
        return self._granters


class World:
    """What a fault can see and touch (harness.core.protocols.World)."""

    def __init__(
        self,
        *,
        clock: Clock,
        cluster: Cluster,
        workers: Sequence[WorkerHandle],
        view: View,
        runtime: str,
        backend: str,
    ) -> None:
        self.clock, self.cluster, self.workers = clock, cluster, workers
        self.view, self.runtime, self.backend = view, runtime, backend

    @property
    def peers(self) -> bool:
        return has_peers(self.backend)

    def seen_as(self, view: View) -> World:
        """The same world with another view."""
        return World(
            clock=self.clock,
            cluster=self.cluster,
            workers=self.workers,
            view=view,
            runtime=self.runtime,
            backend=self.backend,
        )


class Active(msgspec.Struct):
    """An injection in progress.  phase: injecting | on | healing."""

    step: FaultStep
    fault: Fault
    window: FaultWindow
    phase: str = "injecting"
    heal_at_ns: int = 0
    promise: int = -1


class NemesisRunner:
    """The plan's faults over one run; all methods but the threads' work run in the loop."""

    def __init__(
        self,
        *,
        world: World,
        view: LiveView,
        steps: Sequence[FaultStep],
        seed: int,
        ledger: FileLedger,
        journal: Journal,
        clock: Clock,
        start_ns: int,
        wake: Callable[[], None],
        threaded: bool,
    ) -> None:
        self.world, self.view = world, view
        self.windows: list[FaultWindow] = []
        self.failures: list[str] = []
        self.planned = len(steps)
        self.absent: set[str] = set()  # workers that are gone by themselves: nobody to be hit
        self._waiting = list(steps)
        self._active: dict[int, Active] = {}
        self._healed_ns: dict[int, int] = {}
        self._rng: dict[int, random.Random] = {s.id: stream(seed, f"aim/{s.id}") for s in steps}
        self._ledger, self._journal, self._clock = ledger, journal, clock
        self._start_ns, self._wake, self._threaded = start_ns, wake, threaded
        self._done: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._promised: dict[int, tuple[int, Sequence[UndoStep]]] = {}
        self._preparing: set[int] = set()

    # ---- the loop's side -----------------------------------------------------------------

    def begin(self, start_ns: int) -> None:
        """Sets time 0 of the run."""
        self._start_ns = start_ns

    def status(self) -> str:
        """Faults so far in a few words, for the line of progress."""
        active = [
            f"{active.step.kind} {', '.join(active.window.targets)}"
            for active in self._active.values()
        ]
        now = f" ({'; '.join(active)})" if active else ""
        return f"faults {len(self.windows)}/{self.planned}{now}"

    def tick(self, now_ns: int) -> int | None:
        """Starts what is due; returns when it wants to be called next (ns since the start)."""
        if not (self._waiting or self._active):
            return None
        self._collect()
        wakes = []
        for active in list(self._active.values()):
            if active.phase == "on":
                if active.heal_at_ns <= now_ns:
                    active.window.off_ns = now_ns
                    self._begin(active, "healing", self._heal)
                else:
                    wakes.append(active.heal_at_ns)
        for step in list(self._waiting):
            arm_ns = self._arm_ns(step)
            if arm_ns is None:
                continue
            if arm_ns > now_ns:
                wakes.append(arm_ns)
                continue
            if not self._is_prepared(step):
                continue
            targets = self._targets(step, now_ns)
            if targets:
                self._waiting.remove(step)
                self._fire(step, targets)
            elif step.when == "near-expiry":
                moment_ns = self.view.next_expiring_ns(step.near_ms * NS_PER_MS)
                if moment_ns is not None:
                    wakes.append(moment_ns - self._start_ns)
        return min(wakes, default=None)

    def is_idle(self) -> bool:
        """True when no fault is active (steps that wait for their moment don't count)."""
        return not self._active

    def expects_death(self, worker: int) -> bool:
        """True if an active fault kills this worker."""
        name = self.world.workers[worker].name
        return any(
            active.fault.kind == "worker-kill" and name in active.window.targets
            for active in self._active.values()
        )

    def acts_on(self, worker: int) -> bool:
        """True while a fault is active whose target is this worker itself."""
        name = self.world.workers[worker].name
        return any(name in active.window.targets for active in self._active.values())

    def stop(self) -> None:
        """No further step fires; active ones heal in their time."""
        self._waiting.clear()

    def heal_all(self, poll: Callable[[int], None]) -> None:
        """Heals every active fault now and waits until that is done.

        ``poll`` waits for a moment (given a deadline, ns since the start) and takes completions.
        """
        self.stop()
        deadline_ns = self._now() + round(HEAL_WAIT_S * 1000) * NS_PER_MS
        while self._active and self._now() < deadline_ns:
            for active in self._active.values():
                active.heal_at_ns = 0
            self.tick(self._now())
            if self._active:
                poll(self._now() + 10 * NS_PER_MS)
        for active in self._active.values():
            self.failures.append(f"{active.step.kind}: did not heal within {HEAL_WAIT_S:.0f} s")

    def join(self, timeout_s: float) -> None:
        """Waits for threads in the middle of a fault, so that nothing acts during teardown."""
        for thread in self._threads:
            thread.join(timeout_s)

    def _now(self) -> int:
        return self._clock.now() - self._start_ns

    def _arm_ns(self, step: FaultStep) -> int | None:
        if step.after is None:
            return step.arm_ms * NS_PER_MS
        healed_ns = self._healed_ns.get(step.after)
        return None if healed_ns is None else healed_ns + step.arm_ms * NS_PER_MS

    def _is_prepared(self, step: FaultStep) -> bool:
        """True once the promise of an aimed step is on disk; starts that if it is not."""
        if not step.when or step.id in self._promised:
            return True
        if step.id not in self._preparing:
            self._preparing.add(step.id)
            self._spawn(f"nemesis-{step.id}-prepare", lambda: self._prepare(step))
        return step.id in self._promised

    def _targets(self, step: FaultStep, now_ns: int) -> list[str]:
        holders, waiters = self.view.holders(), self.view.waiters()
        if step.when == "held":
            holders = self.view.granted_since(self._start_ns + now_ns - FRESH_NS)
        elif step.when == "near-expiry":
            holders = self.view.expiring(self._start_ns + now_ns, step.near_ms * NS_PER_MS)
        elif step.when == "renewing":
            holders = self.view.renewing()
        elif step.when == "between-grant-and-reply":
            waiters = self.view.granting()
        moment = {
            "": True,
            "waiting": bool(waiters),
            "between-grant-and-reply": bool(waiters),
        }.get(step.when, bool(holders))
        if not moment:
            return []
        world = self.world.seen_as(AimedView(holders, waiters, self.view.granters()))
        targets = resolve(step.target, FAULTS.load(step.kind).acts_on, world, self._rng[step.id])
        # Two faults on one target would take each other's effect for their own: the later waits.
        busy = {name for active in self._active.values() for name in active.window.targets}
        busy |= self.absent
        return [] if busy.intersection(targets) else targets

    def _fire(self, step: FaultStep, targets: list[str]) -> None:
        fault_class = FAULTS.load(step.kind)
        fault: Fault = fault_class(**settle(fault_class, step.params))
        window = FaultWindow(
            id=step.id, kind=step.kind, targets=targets, start_ns=self._now(), when=step.when
        )
        active = Active(step, fault, window)
        self._active[step.id] = active
        self._journal.nemesis(
            window.start_ns,
            step.kind,
            {"id": step.id, "phase": "inject", "targets": targets, "when": step.when},
        )
        self._begin(active, "injecting", self._inject)

    def _begin(self, active: Active, phase: str, work: Callable[[Active], None]) -> None:
        active.phase = phase
        self._spawn(f"nemesis-{active.step.id}-{phase}", lambda: self._guard(active, work))
        if not self._threaded:
            self._collect()

    def _spawn(self, name: str, work: Callable[[], None]) -> None:
        if not self._threaded:
            work()
            return
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _collect(self) -> None:
        while True:
            try:
                identity, failure = self._done.get_nowait()
            except queue.Empty:
                return
            active = self._active[identity]
            if failure:
                self.failures.append(f"{active.step.kind} ({active.phase}): {failure}")
            if active.phase == "injecting":
                self._injected(active)
            else:
                self._ended(active)

    def _injected(self, active: Active) -> None:
        active.phase = "on"
        active.window.on_ns = self._now() if active.window.bit else None
        active.heal_at_ns = max(
            self._now(), active.window.start_ns + active.step.duration_ms * NS_PER_MS
        )
        self._record(active, "injected", active.window.bit)

    def _ended(self, active: Active) -> None:
        window = active.window
        window.end_ns = self._now()
        self._healed_ns[active.step.id] = window.end_ns
        del self._active[active.step.id]
        self.windows.append(window)
        self._record(active, "healed", window.healed)

    def _record(self, active: Active, phase: str, proven: bool) -> None:
        now_ns = self._now()
        record = {
            "id": active.step.id,
            "phase": phase,
            "proven": proven,
            "says": active.window.says,
        }
        self._journal.nemesis(now_ns, active.step.kind, record)
        self._ledger.fault({**msgspec.to_builtins(active.window), "phase": phase})

    # ---- the threads' side ---------------------------------------------------------------

    def _guard(self, active: Active, work: Callable[[Active], None]) -> None:
        failure = ""
        try:
            work(active)
        except LockhavocError as error:
            failure = str(error)
        except Exception:
            failure = traceback.format_exc(limit=5)
        self._done.put((active.step.id, failure))
        self._wake()

    def _prepare(self, step: FaultStep) -> None:
        """Promises the undo of everything that this step might hit, before its moment comes."""
        fault_class = FAULTS.load(step.kind)
        fault: Fault = fault_class(**settle(fault_class, step.params))
        try:
            steps = fault.undo(self.world, self._candidates(fault.acts_on))
            why = f"{step.kind} {step.target}, whoever it is"
            self._promised[step.id] = (self._ledger.promise(steps, why=why), steps)
        except LockhavocError:
            # Somebody is in no state to be hit right now; the promise is then made at the moment.
            self._promised[step.id] = (-1, ())
        self._wake()

    def _candidates(self, acts_on: str) -> list[str]:
        if acts_on == "worker":
            return list(dict.fromkeys(worker.name for worker in self.world.workers))
        if acts_on == "node":
            return list(self.world.cluster.nodes)
        return [link.name for link in self.world.cluster.links]

    def _inject(self, active: Active) -> None:
        fault, targets = active.fault, active.window.targets
        steps: Sequence[UndoStep] = fault.undo(self.world, targets)
        active.promise, promised = self._promised.get(active.step.id, (-1, ()))
        if any(step not in promised for step in steps):
            why = f"{active.step.kind} {', '.join(targets)}"
            active.promise = self._ledger.promise([*promised, *steps], why=why)
        fault.inject(self.world, targets)
        evidence = fault.evidence(self.world, targets)
        active.window.bit, active.window.says = evidence.bit, evidence.says

    def _heal(self, active: Active) -> None:
        fault, targets = active.fault, active.window.targets
        fault.heal(self.world, targets)
        evidence = fault.healed(self.world, targets)
        active.window.healed = evidence.bit
        active.window.says = f"{active.window.says}; {evidence.says}"
        if evidence.bit and active.promise >= 0:
            self._ledger.done(active.promise)
