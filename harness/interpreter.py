"""The one loop that drives workers and nemesis and writes the history.

Per turn: completions first, then the nemesis, then new operations, as in Jepsen's interpreter
(``jepsen.generator.interpreter``): a completion frees its worker before anything new is sent, a
worker has at most one operation in flight, and an unknown outcome retires the process: the worker
closes its session, opens another and goes on under a new number (old + number of workers).

The same loop runs in real time and in virtual time; only the pool and the clock differ.
What differs from Jepsen: waiting is one ``poll`` with a deadline instead of a sleep of 1 ms, and
aimed faults are triggered from this loop, at the turn in which their moment comes.

Trap: the harness stamps the sending of an operation, but a stopped worker takes it up later.  The
worker's own stamps travel in ``extra`` and ``harness.stamps`` tightens the intervals afterwards.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from harness.core import limits
from harness.core.clock import NS_PER_MS, NS_PER_S, Clock
from harness.core.history import Type
from harness.core.messages import PoolEvent, Reply, Request, WorkerPool
from harness.generator import Completion, Crash, Generator, Step
from harness.journal import Journal
from harness.liveview import LiveView
from harness.nemesis_runner import NemesisRunner

IDLE_POLL_NS = 50 * NS_PER_MS  # longest wait when nothing is scheduled
REOPEN_DELAY_NS = 100 * NS_PER_MS  # between two attempts to open a session
CRASH_WAIT_NS = 5 * NS_PER_MS  # until it is looked again whether a fault still acts on a worker
LOCK_OPS = frozenset({"acquire", "release", "renew"})


_INFO = str(Type.INFO)  # a member of an enumeration takes four times as long to look up


class InFlight(msgspec.Struct, gc=False):
    """The operation that a worker has."""

    step: Step
    request: int
    process: int
    sent_ns: int


class Interpreter:
    """State of the loop over one run; ``run`` may be called once per phase."""

    def __init__(
        self,
        *,
        clock: Clock,
        start_ns: int,
        pool: WorkerPool,
        journal: Journal,
        view: LiveView,
        nemesis: NemesisRunner,
        sessions: Sequence[dict[str, Any]],
        on_turn: Callable[[int], None],
        turn_every_ns: int,
        leased: bool = True,
    ) -> None:
        self.clock, self.start_ns, self.pool = clock, start_ns, pool
        self.journal, self.view, self.nemesis = journal, view, nemesis
        self.workers = len(sessions)
        self.failures: list[str] = []
        self.hellos: dict[int, dict[str, Any]] = {}
        self._sessions = sessions
        self._on_turn, self._turn_every_ns = on_turn, turn_every_ns
        self._leased = leased  # do locks end after a time: else histories name none
        self._generator: Generator | None = None
        self._refused: dict[int, str] = {}
        self._process = list(range(self.workers))
        self._flight: dict[int, InFlight] = {}
        self._opening: dict[int, int] = {}
        self._closing: set[int] = set()
        self._dead: set[int] = set()
        self._free: list[int] = []
        self._timed: list[tuple[int, int, Step | None]] = []
        self._away: list[tuple[int, int]] = []  # when a crashed worker comes back
        self._requests = 0
        self._fatal = False
        self._turn_ns = 0

    def now(self) -> int:
        """Time since the start of the run, ns."""
        return self.clock.now() - self.start_ns

    def open_all(self, deadline_ns: int) -> None:
        """Waits until every worker said hello and opened its session (or the deadline)."""
        while len(self._free) < self.workers and not self._fatal:
            now_ns = self.now()
            if now_ns >= deadline_ns:
                silent = sorted(set(range(self.workers)) - set(self._free))
                names = ", ".join(f"w{worker}" for worker in silent)
                reason = "; ".join(sorted(set(self._refused.values()))) or "no answer"
                self.failures.append(f"workers {names} did not open a session: {reason}")
                return
            self._start_due(now_ns)
            self.drain(min(deadline_ns, now_ns + IDLE_POLL_NS))

    def run(self, generator: Generator, *, deadline_ns: int) -> None:
        """Runs until the generator and the nemesis are done, or until the deadline.

        Operations still in flight then stay without a completion: unknown.
        """
        self._generator = generator
        self._free = [w for w in range(self.workers) if self._is_free(w)]
        clock, nemesis, journal, poll = self.clock, self.nemesis, self.journal, self.pool.poll
        while not self._fatal:
            now_ns = clock.now() - self.start_ns
            if now_ns >= deadline_ns:
                break
            nemesis_wake_ns = nemesis.tick(now_ns)
            self._dispatch(now_ns)
            if self._away:
                self._bring_back(now_ns)
            if not self._flight and not self._timed and self._is_over():
                break
            wake_ns = now_ns + IDLE_POLL_NS
            if wake_ns > deadline_ns:
                wake_ns = deadline_ns
            if self._timed and self._timed[0][0] < wake_ns:
                wake_ns = self._timed[0][0]
            if nemesis_wake_ns is not None and nemesis_wake_ns < wake_ns:
                wake_ns = nemesis_wake_ns
            if self._away and self._away[0][0] < wake_ns:
                wake_ns = self._away[0][0]
            for event in poll(self.start_ns + wake_ns):
                self._take(event)
            journal.flush_if_due(now_ns)
            if now_ns >= self._turn_ns:
                self._turn_ns = now_ns + self._turn_every_ns
                self._on_turn(now_ns)

    def _is_over(self) -> bool:
        busy = self._free or self._opening or self._away
        return not busy and self.nemesis.is_idle() and not self._starting()

    def drain(self, deadline_ns: int) -> None:
        """Takes the completions that come until ``deadline_ns`` (ns since the start)."""
        for event in self.pool.poll(self.start_ns + deadline_ns):
            self._take(event)

    def _is_free(self, worker: int) -> bool:
        return not (worker in self._flight or worker in self._opening or worker in self._dead)

    def _starting(self) -> bool:
        """True while a worker that died was started anew and has not said hello yet."""
        return any(self.pool.handles[w].status().state != "dead" for w in self._dead)

    # ---- sending -------------------------------------------------------------------------

    def _dispatch(self, now_ns: int) -> None:
        generator = self._generator
        assert generator is not None
        for worker in self._free:
            step, generator = generator.op(worker, now_ns)
            if step is not None:
                if step.at_ns <= now_ns and step.crash is None:
                    self._send(step, now_ns)
                else:
                    heapq.heappush(self._timed, (step.at_ns, worker, step))
        self._free.clear()
        self._generator = generator
        if self._timed:
            self._start_due(now_ns)

    def _start_due(self, now_ns: int) -> None:
        while self._timed and self._timed[0][0] <= now_ns:
            _, worker, step = heapq.heappop(self._timed)
            if worker in self._dead:
                continue
            if step is None:
                self._session(worker, "open")
            elif step.crash is not None and self.nemesis.acts_on(worker):
                # A fault would take this death for its own: the crash waits until that is over.
                heapq.heappush(self._timed, (now_ns + CRASH_WAIT_NS, worker, step))
            else:
                self._send(step, now_ns)

    def _send(self, step: Step, now_ns: int) -> None:
        worker, do = step.worker, step.do
        self._requests += 1
        process = self._process[worker]
        value: dict[str, Any] = {"hold": step.hold}
        if step.crash is not None:
            self._crash(step, step.crash, now_ns, {**value, "point": step.crash.point})
            return
        request = Request(self._requests, do, step.key, step.hold)
        if self._leased and do in ("acquire", "renew"):
            value["ttl_ns"] = step.ttl_ms * NS_PER_MS
        if do == "acquire":
            request.ttl_ms, request.timeout_ms = step.ttl_ms, step.timeout_ms
            if step.mode:
                value["mode"] = step.mode
                request.mode = "read" if step.mode == "read" else None
            request.k = step.k
        elif do == "renew":
            request.ttl_ms = step.ttl_ms
        elif do == "write":
            request.token = step.token
            request.value = self._requests  # unique, so that a lost update shows
            if step.tick is not None:
                value["tick"] = step.tick
                request.value = {"tick": step.tick, "write": self._requests}
            value["value"] = request.value
            if step.token is not None:
                value["token"] = step.token
        self.journal.invoke(now_ns, process, do, step.key, value)
        self._flight[worker] = InFlight(step, self._requests, process, now_ns)
        self.view.sent(worker, do, step.key, self.start_ns + now_ns)
        self.pool.send(worker, request)

    def _crash(self, step: Step, crash: Crash, now_ns: int, value: dict[str, Any]) -> None:
        """Ends the worker's process; its end of file completes the step."""
        worker = step.worker
        self.journal.invoke(now_ns, self._process[worker], step.do, step.key, value)
        self._flight[worker] = InFlight(step, self._requests, self._process[worker], now_ns)
        self.view.died(worker)
        handle = self.pool.handles[worker]
        self.nemesis.absent.add(handle.name)
        if crash.how == "exit":
            handle.leave()
        else:
            handle.kill()

    def _bring_back(self, now_ns: int) -> None:
        while self._away and self._away[0][0] <= now_ns:
            self.pool.restart(heapq.heappop(self._away)[1])

    def _session(self, worker: int, do: str) -> None:
        """Sends ``open`` or ``close``; after a close comes an open, after an open it is free."""
        self._requests += 1
        self._opening[worker] = self._requests
        request = Request(self._requests, do)
        if do == "open":
            request.options = self._sessions[worker]
        else:
            self._closing.add(worker)
        self.pool.send(worker, request)

    # ---- receiving -----------------------------------------------------------------------

    def _take(self, event: PoolEvent) -> None:
        worker, reply = event.worker, event.reply
        if reply is None:
            self._died(worker, event)
        elif not reply.event:
            flight = self._flight.get(worker)
            if flight is not None and flight.request == reply.id:
                self._completed(worker, reply, event.received_ns - self.start_ns)
            elif reply.id and self._opening.get(worker) == reply.id:
                self._opened(worker, reply)
        elif reply.event == "hello":
            self._dead.discard(worker)
            self.nemesis.absent.discard(self.pool.handles[worker].name)
            self.hellos[worker] = reply.value if isinstance(reply.value, dict) else {}
            self._session(worker, "open")
        elif reply.event == "lost":
            self.journal.lost(event.received_ns - self.start_ns, self._process[worker], reply)

    def _opened(self, worker: int, reply: Reply) -> None:
        if worker in self._closing:
            # However the close ended: the session is over for us, and a new one begins.
            self._closing.remove(worker)
            self._session(worker, "open")
            return
        if reply.type == Type.OK:
            del self._opening[worker]
            self._free.append(worker)
            return
        self._refused[worker] = reply.error or "refused"
        # The server may be down or cut off right now: a client would try again, so do we.
        at_ns = self.now() + REOPEN_DELAY_NS
        heapq.heappush(self._timed, (at_ns, worker, None))

    def _completed(self, worker: int, reply: Reply, received_ns: int) -> None:
        flight = self._flight.pop(worker)
        step, outcome = flight.step, reply.type
        value = reply.value if isinstance(reply.value, dict) else {}
        token = value.get("token")
        self.journal.complete(
            received_ns,
            flight.process,
            step,
            reply,
            sent_ns=flight.sent_ns,
            start_ns=self.start_ns,
        )
        ttl_ns = (step.ttl_ms * NS_PER_MS or None) if self._leased else None
        self.view.completed(
            worker,
            step.do,
            outcome,
            step.key,
            step.hold,
            self.start_ns + received_ns,
            ttl_ns,
            nodes=value.get("nodes", ()),
        )
        if outcome == _INFO and step.do in LOCK_OPS:
            self._process[worker] += self.workers
            self._session(worker, "close")
        else:
            self._free.append(worker)
        lost = reply.error == "not-held"
        answer = value if step.do == "read" else None
        self._tell(Completion(worker, received_ns, step.do, outcome, token, lost, answer))

    def _tell(self, event: Completion) -> None:
        if self._generator is not None:
            self._generator = self._generator.update(event)

    def _died(self, worker: int, event: PoolEvent) -> None:
        now_ns = event.received_ns - self.start_ns
        self._dead.add(worker)
        self._opening.pop(worker, None)
        self._closing.discard(worker)
        self._free = [free for free in self._free if free != worker]
        self._timed = [entry for entry in self._timed if entry[1] != worker]
        heapq.heapify(self._timed)
        self.view.died(worker)
        flight = self._flight.pop(worker, None)
        crash = None if flight is None else flight.step.crash
        if crash is not None:
            heapq.heappush(self._away, (now_ns + crash.back_ms * NS_PER_MS, worker))
        elif not self.nemesis.expects_death(worker):
            self.failures.append(f"worker {worker} died: {event.died}")
            self._fatal = True
        self._process[worker] += self.workers
        if flight is not None:
            how = event.died.partition(";")[0]
            died = f"worker died: {event.died}" if crash is None else f"crashed: {how}"
            reply = Reply(flight.request, Type.INFO, error=died)
            self.journal.complete(
                now_ns,
                flight.process,
                flight.step,
                reply,
                sent_ns=flight.sent_ns,
                start_ns=self.start_ns,
            )
        # Also when it died between two operations: its section is over.
        self._tell(Completion(worker, now_ns, "died", Type.INFO))


def worker_start_deadline_ns(now_ns: int) -> int:
    """When workers must have said hello and opened their sessions."""
    return now_ns + round(limits.WORKER_START_TIMEOUT_S * NS_PER_S)
