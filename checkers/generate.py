"""Long lock histories from a simulated service, as JSON lines, as fast as a disk wants them.

    made = generate(Path("h.jsonl"), operations=1_000_000, seed=1)
    made = generate(path, operations=10_000, seed=2, inject="double-grant")   # at 90 %

The service is right: one holder per key, first come first served, growing tokens, a fenced
resource, optionally leases.  Clients acquire, write, sometimes renew, release; a share of the
operations ends with an unknown outcome (the reply was lost), after which the process retires, and
its successor ends the hold it left behind, as a session rule wants it.  ``inject`` breaks one rule
once:

    double-grant    a second grant while the first surely holds
    early-expiry    the same, after more than half of the lease (with ttl_ns)
    stale-token     a grant with a token that is not greater than the last
    stale-write     the resource accepts a write of a former holder
    lost-lock       a holder is told "not held"
    late-release    a release of a hold that had been released is answered ok

For benchmarks, for tests of the online monitors, and as something to break.  Deterministic: the
bytes depend on the arguments alone.

Trap: an operation counts when it is invoked; a history ends with all operations completed.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Generator, Iterator
from heapq import heappop, heappush
from pathlib import Path

import msgspec

from harness.core.errors import UserError
from harness.core.history import SCHEMA

INJECTIONS = (
    "double-grant",
    "early-expiry",
    "stale-token",
    "stale-write",
    "lost-lock",
    "late-release",
)
STEP_NS = 1_000_000  # a call takes up to this
_FLUSH_LINES = 8192
_SLEEP_STEPS = 8  # a robbed holder sleeps this long, so that the overlap is certain

Life = Generator[int | None, int, None]  # yields when to go on (None: when woken), is sent the time


class Made(msgspec.Struct, frozen=True):
    """What was written.  injected: index of the event at which the broken rule shows, or None."""

    lines: int
    operations: int
    injected: int | None = None


class _Key:
    """State of one key: at the lock service (holder, queue) and at the resource (accepted)."""

    __slots__ = ("accepted", "holder", "name", "over_ns", "owner", "resource", "token", "waiters")

    def __init__(self, number: int) -> None:
        self.name, self.resource = f"k{number}", f"r{number}"
        self.holder: str | None = None
        self.owner: _Client | None = None
        self.token = self.accepted = self.over_ns = 0
        self.waiters: deque[tuple[_Client, str]] = deque()


class _Client:
    """A worker.  sure: it was told that it holds, and has not asked for the release."""

    __slots__ = ("dies", "granted", "hold", "life", "process", "robbed", "sure", "token")

    def __init__(self, process: int) -> None:
        self.process = process
        self.hold = ""
        self.token = 0
        self.granted = self.sure = self.robbed = self.dies = False
        self.life: Life | None = None


def generate(
    path: str | Path,
    *,
    operations: int,
    seed: int = 1,
    processes: int = 8,
    keys: int = 16,
    info: float = 0.02,
    renew: float = 0.1,
    writes: bool = True,
    ttl_ns: int | None = None,
    inject: str | None = None,
    inject_at: float = 0.9,
) -> Made:
    """Writes a history of about ``operations`` operations, each with its completion, to ``path``.

    info: share of unknown outcomes.  renew: share of holds that renew.  inject: see above, at the
    first chance after the share ``inject_at`` of the operations.
    """
    if inject is not None and inject not in INJECTIONS:
        raise UserError(f"inject is {inject!r}, it must be one of {', '.join(INJECTIONS)}")
    if inject == "early-expiry" and ttl_ns is None:
        raise UserError("inject is 'early-expiry', which needs leases: give ttl_ns")
    run = _Run(random.Random(seed), processes, keys, ttl_ns)
    run.operations, run.info, run.renew, run.writes = operations, info, renew, writes
    run.inject, run.inject_from = inject, int(operations * inject_at)
    with Path(path).open("w", encoding="ascii", buffering=1 << 20) as file:
        header = f'"ttl_ns":{ttl_ns},' if ttl_ns is not None else ""
        file.write(f'{{"schema":"{SCHEMA}",{header}"seed":{seed}}}\n')
        for text in run.batches():
            file.write(text)
    return Made(run.index, run.begun, run.injected)


class _Run:
    """The simulation: clients are coroutines, a heap says who goes on when."""

    def __init__(self, rng: random.Random, processes: int, keys: int, ttl_ns: int | None) -> None:
        self.random, self.ttl_ns, self.processes = rng.random, ttl_ns, processes
        self.keys = [_Key(number) for number in range(keys)]
        self.heap: list[tuple[int, int, _Client | _Key]] = []
        self.number = self.index = self.begun = self.holds = self.operations = 0
        self.info = self.renew = 0.0
        self.writes = True
        self.lines: list[str] = []
        self.inject: str | None = None
        self.inject_from = 0
        self.injected: int | None = None
        self.lease = "" if ttl_ns is None else f',"ttl_ns":{ttl_ns}'
        for process in range(processes):
            self.start(process, self.delay(), None)

    def batches(self) -> Iterator[str]:
        """The lines, some thousands at a time."""
        heap, lines = self.heap, self.lines
        while heap:
            now, _, who = heappop(heap)
            if isinstance(who, _Key):
                if who.holder is not None and now >= who.over_ns:
                    self.free(now, who)
                continue
            assert who.life is not None
            try:
                at = who.life.send(now)
            except StopIteration:
                continue
            if at is not None:
                self.number += 1
                heappush(heap, (at, self.number, who))
            if len(lines) > _FLUSH_LINES:
                yield "".join(lines)
                lines.clear()
        yield "".join(lines)

    def start(self, process: int, at: int, orphan: tuple[_Key, str] | None) -> None:
        """A new process; it first ends the hold that the one before it left behind."""
        client = _Client(process)
        client.life = self.live(client, orphan)
        next(client.life)
        self.number += 1
        heappush(self.heap, (at, self.number, client))

    def delay(self) -> int:
        return 1000 + int(self.random() * STEP_NS)

    def due(self, what: str) -> bool:
        """Whether the rule ``what`` is to be broken now."""
        if self.inject != what or self.begun < self.inject_from:
            return False
        self.inject = None  # once
        return True

    def write_line(
        self, now: int, client: _Client, kind: str, f: str, key: str, value: str, end: str = ""
    ) -> None:
        index = self.index
        self.lines.append(
            f'{{"index":{index},"time":{now},"process":{client.process},"type":"{kind}",'
            f'"f":"{f}","key":"{key}","value":{{"hold":"{value}}}{end}}}\n'
        )
        self.index = index + 1

    # The service.

    def grant(self, now: int, key: _Key, client: _Client, hold: str) -> None:
        key.holder, key.owner = hold, client
        key.token += 1
        client.token, client.granted = key.token, True
        if self.ttl_ns is not None:
            key.over_ns = now + self.ttl_ns
            self.number += 1
            heappush(self.heap, (key.over_ns, self.number, key))

    def free(self, now: int, key: _Key) -> None:
        """The holder is gone: the first that still waits gets the lock, and its reply later."""
        key.holder = key.owner = None
        while key.waiters:
            client, hold = key.waiters.popleft()
            if client.hold == hold and not client.granted:
                self.grant(now, key, client, hold)
                self.number += 1
                heappush(self.heap, (now + self.delay(), self.number, client))
                return

    def robs(self, key: _Key) -> bool:
        """Whether the service forgets a holder that surely holds."""
        owner = key.owner
        if owner is None or not owner.sure:
            return False
        if self.due("early-expiry"):
            owner.dies = True
        elif not self.due("double-grant"):
            return False
        self.injected, owner.robbed = self.index, True
        return True

    # A client.

    def live(self, client: _Client, orphan: tuple[_Key, str] | None) -> Life:
        now = yield None
        if orphan is not None:
            client.hold = orphan[1]
            now = yield from self.release(now, client, orphan[0])
            if now < 0:
                return
        while self.begun < self.operations:
            key = self.keys[int(self.random() * len(self.keys))]
            now = yield from self.acquire(now, client, key)
            if now < 0:
                return
            if self.writes:
                now = yield from self.write(now, client, key)
            if now >= 0 and self.random() < self.renew:
                now = yield from self.refresh(now, client, key)
            if now < 0:
                return
            if client.robbed:
                client.robbed = False
                now = yield now + _SLEEP_STEPS * STEP_NS
                if client.dies:
                    self.start(client.process + self.processes, now, None)
                    return
            now = yield from self.release(now, client, key)
            if now < 0:
                return

    def unknown(self, now: int, client: _Client, f: str, key: _Key, name: str) -> int:
        """The outcome is lost: the process retires."""
        self.write_line(now, client, "info", f, name, client.hold + '"')
        self.start(client.process + self.processes, now + self.delay(), (key, client.hold))
        return -1

    def acquire(self, now: int, client: _Client, key: _Key) -> Generator[int | None, int, int]:
        self.holds += 1
        client.hold = hold = f"{client.process}-{self.holds}"
        client.granted = client.sure = client.robbed = False
        self.begun += 1
        self.write_line(now, client, "invoke", "acquire", key.name, f'{hold}"{self.lease}')
        if key.holder is None or self.robs(key):
            self.grant(now, key, client, hold)
            now = yield now + self.delay()
        else:
            key.waiters.append((client, hold))
            if self.random() < self.info / 2:
                now = yield now + self.delay()
                if not client.granted:
                    client.hold = ""
                    self.write_line(now, client, "info", "acquire", key.name, hold + '"')
                    self.start(client.process + self.processes, now + self.delay(), (key, hold))
                    return -1
                now = yield None  # the reply is on its way
            else:
                now = yield None
        if self.random() < self.info:
            return self.unknown(now, client, "acquire", key, key.name)
        if client.token > 2 and self.due("stale-token"):
            client.token -= 2
            self.injected = self.index
        self.write_line(now, client, "ok", "acquire", key.name, f'{hold}","token":{client.token}')
        client.sure = True
        return (yield now + self.delay() // 8)

    def write(self, now: int, client: _Client, key: _Key) -> Generator[int | None, int, int]:
        self.begun += 1
        value = f'{client.hold}","token":{client.token}'
        self.write_line(now, client, "invoke", "write", key.resource, value)
        stale = client.token < key.accepted
        key.accepted = max(key.accepted, client.token)
        now = yield now + self.delay()
        if self.random() < self.info:
            return self.unknown(now, client, "write", key, key.resource)
        if stale:
            self.write_line(now, client, "fail", "write", key.resource, value, ',"error":"stale"')
        else:
            self.write_line(now, client, "ok", "write", key.resource, value)
        return (yield now + self.delay() // 8)

    def refresh(self, now: int, client: _Client, key: _Key) -> Generator[int | None, int, int]:
        self.begun += 1
        value = f'{client.hold}"{self.lease}'
        self.write_line(now, client, "invoke", "renew", key.name, value)
        held = key.holder == client.hold or client.robbed
        if held and self.ttl_ns is not None and not client.robbed:
            key.over_ns = now + self.ttl_ns
            self.number += 1
            heappush(self.heap, (key.over_ns, self.number, key))
        now = yield now + self.delay()
        if self.random() < self.info:
            return self.unknown(now, client, "renew", key, key.name)
        if held:
            self.write_line(now, client, "ok", "renew", key.name, value)
        else:
            self.write_line(now, client, "fail", "renew", key.name, value, ',"error":"not-held"')
        return (yield now + self.delay() // 8)

    def release(self, now: int, client: _Client, key: _Key) -> Generator[int | None, int, int]:
        hold, sure = client.hold, client.sure
        if sure and self.ttl_ns is not None and self.random() < 0.001:
            now = yield now + self.ttl_ns + self.delay()  # sleeps past its lease
        if sure and key.holder == hold and self.due("lost-lock"):
            now = yield from self.lose(now, client, key)
        self.begun += 1
        client.sure = False
        self.write_line(now, client, "invoke", "release", key.name, f'{hold}"')
        held = key.holder == hold
        if held and self.random() >= self.info / 4:
            self.free(now, key)
        elif held:  # lost on its way; somebody must ask again
            now = yield now + self.delay()
            return self.unknown(now, client, "release", key, key.name)
        now = yield now + self.delay()
        if self.random() < self.info * 0.75:
            return self.unknown(now, client, "release", key, key.name)
        if held or (sure and self.ttl_ns is None):
            self.write_line(now, client, "ok", "release", key.name, f'{hold}"')
            now = yield from self.late(now, client, key)
        else:
            self.write_line(
                now, client, "fail", "release", key.name, f'{hold}"', ',"error":"not-held"'
            )
        return (yield now + self.delay())

    def lose(self, now: int, client: _Client, key: _Key) -> Generator[int | None, int, int]:
        """The holder is told, before it asks for its release, that it holds nothing."""
        self.begun += 1
        value = f'{client.hold}"'
        self.write_line(now, client, "invoke", "renew", key.name, value)
        now = yield now + self.delay()
        self.injected = self.index
        self.write_line(now, client, "fail", "renew", key.name, value, ',"error":"not-held"')
        return (yield now + self.delay())

    def late(self, now: int, client: _Client, key: _Key) -> Generator[int | None, int, int]:
        """After its release: a second one, or a write that comes too late."""
        if self.due("late-release"):
            f, name, value = "release", key.name, f'{client.hold}"'
        elif self.writes and key.accepted > client.token and self.due("stale-write"):
            f, name, value = "write", key.resource, f'{client.hold}","token":{client.token}'
            now = yield now + _SLEEP_STEPS * STEP_NS
        else:
            return now
        self.begun += 1
        self.write_line(now, client, "invoke", f, name, value)
        now = yield now + self.delay()
        self.injected = self.index
        self.write_line(now, client, "ok", f, name, value)
        return now
