"""What the workers do next: pure values with two questions, after Jepsen's generators.

``op(worker, now)`` answers with that worker's next step and the generator that comes after it;
``update(event)`` answers with the generator that knows of a completion.  Nothing here reads a
clock, talks to a worker or hides state, so a test can simulate a whole schedule with no threads
and compare the complete list of steps.

    sections = [Section.of(spec, worker=w, until_ns=10 * NS_PER_S) for w in range(4)]
    generator = EachWorker(tuple(sections))

Prior art: jepsen.generator (op/update, pure values).  What differs: our operations depend on the
outcome of the one before (write only while holding, release what was granted), so the leaf is a
small state machine per worker, not a stream of independent operations.  Choices are drawn by
hashing (seed, worker, section), not from a generator object, which would be hidden state.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from harness.core.clock import NS_PER_MS
from harness.core.history import Type

_MASK = (1 << 64) - 1
_OK = str(Type.OK)


class Crash(msgspec.Struct, frozen=True, gc=False):
    """The end of a worker's process.  how: "kill" (SIGKILL) or "exit" (it ends by itself, without
    a release).  point: where in its section.  back_ms: until another takes its place."""

    how: str
    point: str
    back_ms: int


class Step(msgspec.Struct, frozen=True, gc=False):
    """One operation for ``worker``, not before ``at_ns`` (ns since the start of the run)."""

    worker: int
    at_ns: int
    do: str
    key: str
    hold: str
    ttl_ms: int = 0
    timeout_ms: int = 0
    token: int | None = None
    tick: int | None = None
    """Whose work a write does, where work is numbered."""
    mode: str = ""
    """Of an acquire: "read" to share the lock with other readers, "write" or "" to be alone."""
    k: int | None = None
    """Of an acquire: permits that the semaphore has."""
    crash: Crash | None = None
    """Of a step "crash": how the worker's process ends."""


class Completion(msgspec.Struct, frozen=True, gc=False):
    """How a worker's step ended, ``time_ns`` since the start of the run."""

    worker: int
    time_ns: int
    do: str
    type: str
    token: int | None = None
    lost: bool = False
    """The worker was told that it does not hold the lock any more."""
    value: Any = None
    """Of a read: what the resource answered."""


class Generator(Protocol):
    """A pure generator; ``op`` gives None when this worker has nothing more to do."""

    def op(self, worker: int, now_ns: int) -> tuple[Step | None, Generator]: ...

    def update(self, event: Completion) -> Generator: ...


class SectionSpec(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What one critical section does; spans in ns, the draw includes both ends."""

    seed: int
    keys: int
    ttl_ms: int
    timeout_ms: int
    hold_ns: tuple[int, int]
    idle_ns: tuple[int, int]
    renew_every_ns: int | None = None
    writes: int = 1
    read_first: bool = False  # a compare-and-set resource wants to have been read
    read_early: bool = False  # reads when its work begins and writes when it ends
    patience_ms: tuple[int, int] | None = None  # longest wait, drawn for each attempt
    beat_ns: int | None = None  # between two writes; None: all at the end of the work
    k: int | None = None  # permits, where the lock is a semaphore
    name: str = ""  # distinguishes the holds of the main and of the final phase


def draw(seed: int, *parts: int, span: tuple[int, int]) -> int:
    """A number of ``span`` (ends included) that depends on seed and parts alone.

    Mixing function: splitmix64 (Steele, Lea, Flood 2014), applied once per part.
    """
    low, high = span
    if low == high:
        return low
    state = seed & _MASK
    for part in parts:
        state = (state + (part + 1) * 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return low + state % (high - low + 1)


class Section(msgspec.Struct, frozen=True, gc=False):
    """One worker's loop: acquire, work (renewing), write to the resource, release, again.

    stage: idle -> acquire -> work (renew, read, write) -> release -> idle.  New sections start
    before ``until_ns`` and at most ``left`` times; one that has begun goes on to its release.
    """

    spec: SectionSpec
    worker: int
    until_ns: int | None
    left: int | None
    number: int = 0
    stage: str = "idle"
    at_ns: int = 0
    work_end_ns: int = 0
    began_ns: int = 0
    token: int | None = None
    written: int = 0
    has_read: bool = False
    key: str = ""  # of this section's lock; its resource has the same number
    hold: str = ""

    @classmethod
    def of(
        cls,
        spec: SectionSpec,
        *,
        worker: int,
        until_ns: int | None = None,
        sections: int | None = None,
        start_ns: int = 0,
    ) -> Section:
        """The loop of ``worker`` before its first section (which idles first, to spread out)."""
        idle_ns = draw(spec.seed, worker, 0, 0, span=spec.idle_ns)
        return cls(spec, worker, until_ns, sections, at_ns=start_ns + idle_ns)

    def op(self, worker: int, now_ns: int) -> tuple[Step | None, Section]:
        """The next step of this worker."""
        spec = self.spec
        if self.stage == "idle":
            at_ns = max(self.at_ns, now_ns)
            if (self.left is not None and self.left <= 0) or (
                self.until_ns is not None and at_ns >= self.until_ns
            ):
                return None, self
            number = draw(spec.seed, self.worker, self.number, 1, span=(0, spec.keys - 1))
            key, hold = f"k{number}", f"{spec.name}{self.worker}-{self.number}"
            timeout_ms = spec.timeout_ms
            if spec.patience_ms is not None:
                timeout_ms = draw(spec.seed, self.worker, self.number, 3, span=spec.patience_ms)
            step = Step(self.worker, at_ns, "acquire", key, hold, spec.ttl_ms, timeout_ms, k=spec.k)
            return step, replace(self, stage="acquire", at_ns=at_ns, key=key, hold=hold)
        if self.stage == "work":
            resource = f"r{self.key[1:]}"
            if spec.read_early and not self.has_read:
                return Step(worker, now_ns, "read", resource, self.hold), self
            if spec.beat_ns is not None:
                return self._beat(worker, now_ns)
            if spec.renew_every_ns and self.at_ns + spec.renew_every_ns < self.work_end_ns:
                at_ns = self.at_ns + spec.renew_every_ns
                return Step(worker, at_ns, "renew", self.key, self.hold, spec.ttl_ms), self
            if self.written < spec.writes:
                do = "read" if spec.read_first and not self.has_read else "write"
                step = Step(worker, self.work_end_ns, do, resource, self.hold, token=self.token)
                return step, self
            # Without a resource to write to, the section lasts as long, too.
            at_ns = now_ns if spec.writes else max(now_ns, self.work_end_ns)
            return Step(worker, at_ns, "release", self.key, self.hold), replace(
                self, stage="release"
            )
        raise AssertionError(f"worker {self.worker} was asked for a step while in {self.stage}")

    def _beat(self, worker: int, now_ns: int) -> tuple[Step, Section]:
        """A section that writes at every beat, and renews in between."""
        spec, beat_ns = self.spec, self.spec.beat_ns or 0
        ends = self.written >= spec.writes or self.work_end_ns <= now_ns
        write_at_ns = self.began_ns + (self.written + 1) * beat_ns
        if ends or write_at_ns > self.work_end_ns:
            write_at_ns = self.work_end_ns
        if spec.renew_every_ns and self.at_ns + spec.renew_every_ns < write_at_ns:
            at_ns = self.at_ns + spec.renew_every_ns
            return Step(worker, at_ns, "renew", self.key, self.hold, spec.ttl_ms), self
        if ends:
            step = Step(worker, max(now_ns, write_at_ns), "release", self.key, self.hold)
            return step, replace(self, stage="release")
        resource = f"r{self.key[1:]}"
        return Step(worker, write_at_ns, "write", resource, self.hold, token=self.token), self

    def update(self, event: Completion) -> Section:
        """The loop after one of this worker's steps ended."""
        spec, now_ns, happened = self.spec, event.time_ns, event.type == _OK
        if event.do == "acquire" and happened:
            hold_ns = draw(spec.seed, self.worker, self.number, 2, span=spec.hold_ns)
            return replace(self, 
                stage="work", at_ns=now_ns, work_end_ns=now_ns + hold_ns, began_ns=now_ns,
                token=event.token, written=0, has_read=False,
            )  # fmt: skip
        if event.do == "renew" and happened:
            return replace(self, at_ns=now_ns)
        if event.do == "renew" and not event.lost:
            # An unknown renewal may or may not have prolonged the lease: the section ends.
            return replace(
                self, stage="work", at_ns=now_ns, work_end_ns=now_ns, written=spec.writes
            )
        if event.do == "read":
            return replace(self, has_read=True)
        if event.do == "write":
            return replace(self, written=self.written + 1)
        return self._next(now_ns)

    def _next(self, now_ns: int) -> Section:
        number = self.number + 1
        idle_ns = draw(self.spec.seed, self.worker, number, 0, span=self.spec.idle_ns)
        return replace(
            self,
            number=number,
            stage="idle",
            at_ns=now_ns + idle_ns,
            left=None if self.left is None else self.left - 1,
            token=None,
        )


class EachWorker(msgspec.Struct, frozen=True, gc=False):
    """One generator per worker; worker ``w`` is served by ``generators[w]``."""

    generators: tuple[Generator, ...]

    def op(self, worker: int, now_ns: int) -> tuple[Step | None, Generator]:
        """The next step of ``worker``, from its own generator."""
        step, after = self.generators[worker].op(worker, now_ns)
        return step, self._put(worker, after)

    def update(self, event: Completion) -> Generator:
        """Tells the generator of the worker that completed."""
        return self._put(event.worker, self.generators[event.worker].update(event))

    def _put(self, worker: int, generator: Generator) -> EachWorker:
        if self.generators[worker] is generator:
            return self
        after = list(self.generators)
        after[worker] = generator
        return EachWorker(tuple(after))


def ns_span(span_ms: tuple[int, int]) -> tuple[int, int]:
    """A span of ms as a span of ns."""
    return span_ms[0] * NS_PER_MS, span_ms[1] * NS_PER_MS
