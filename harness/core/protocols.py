"""Contracts between the rooms.  Everything that can be replaced is one of these.

``compose`` implements Runtime, Cluster, Node and Link for Docker and for local processes,
``clients.sim`` implements them in virtual time, ``nemesis`` implements Fault against them,
``checkers`` implements Checker.  ``harness`` drives them all and knows none by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from harness.core import powers
from harness.core.clock import Clock
from harness.core.history import History
from harness.core.result import Result
from harness.core.undo import Step

# Optional powers are in a file of their own; they belong to the contracts all the same.
Blockable = powers.Blockable
ClockReading = powers.ClockReading
ClockShimmed = powers.ClockShimmed
Commandable = powers.Commandable
Markable = powers.Markable
OwnDisk = powers.OwnDisk
Promotable = powers.Promotable
SessionKeeping = powers.SessionKeeping
Sessional = powers.Sessional
Skewable = powers.Skewable
Unreachable = powers.Unreachable
Voting = powers.Voting
session_name = powers.session_name

Direction = Literal["upstream", "downstream"]  # client -> server / server -> client


class Status(msgspec.Struct, frozen=True):
    """State of a server or worker as read back from the system, never from our own memory.

    state: running | paused | dead.  identity: changes when it was started anew (pid and start
    time, or container id and start time).
    """

    state: Literal["running", "paused", "dead"]
    identity: str


class Probe(msgspec.Struct, frozen=True):
    """One echo sent through a link (or straight to a node).

    outcome: answered | silent (no byte within the time limit) | closed (connection closed without
    an answer) | refused (no connection).  rtt_ns: only when answered.
    """

    outcome: Literal["answered", "silent", "closed", "refused"]
    rtt_ns: int | None = None


class Machine(Protocol):
    """What runs and can be paused or killed: a server node or a client worker."""

    name: str

    def status(self) -> Status: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def kill(self) -> None:
        """Kills it at once (SIGKILL) and returns when it is dead."""

    def undo_pause(self) -> Sequence[Step]:
        """Steps that resume it from any process; written to the ledger before ``pause``."""


class Node(Machine, Protocol):
    """A server of the cluster."""

    role: str  # "primary", "replica", "member" ... as found by asking

    def start(self, *, wipe: bool = False) -> None:
        """Starts it again (after kill) and returns when it answers; ``wipe`` empties its data."""

    def probe(self, timeout_ms: int) -> Probe:
        """An echo straight to the server, past every proxy."""

    def facts(self) -> Mapping[str, Any]:
        """What the server says of itself: for Redis ``run_id``, ``uptime_s``, ``keys``,
        ``commands`` (total processed), ``echoes`` (commands of the kind that ``probe`` sends, so
        a counter that workers do not move), ``persistent`` (keeps data over a restart).
        Raises HarnessError if it does not answer."""


class Link(Protocol):
    """One way through one proxy: worker -> node."""

    name: str  # e.g. "w0-redis"; the proxy's own name may carry the run's name besides
    src: str  # name of the worker
    dst: str  # name of the node
    host: str
    port: int

    def undo(self, *kinds: str) -> Sequence[Step]:
        """Steps that make the link clean from any process: remove toxics (all, or of these kinds)
        and enable."""

    def add_toxic(self, kind: str, direction: Direction, attributes: Mapping[str, Any]) -> None:
        """Adds a Toxiproxy toxic (latency, bandwidth, timeout, limit_data ...); at most one of a
        kind per direction."""

    def remove_toxic(self, kind: str, direction: Direction) -> None:
        """Removes that one toxic; nothing happens if it is not there."""

    def set_enabled(self, enabled: bool) -> None: ...

    def clear(self) -> None:
        """Removes all toxics and enables the link."""

    def toxics(self) -> Sequence[Mapping[str, Any]]:
        """Toxics as the proxy lists them now; [{"enabled": False}] first if it is disabled."""

    def probe(self, timeout_ms: int) -> Probe:
        """An echo through this link."""


class WorkerHandle(Machine, Protocol):
    """A client worker; ``index`` counts from 0 and stays the same when it is started anew."""

    index: int

    def start(self) -> None:
        """Starts it anew if it is dead, else does nothing; returns when it can be seen running."""

    def leave(self) -> None:
        """Lets its program come to its end, as at an end of file: the client is closed, no lock is
        released.  Returns at once; the pool tells when it is gone."""


class Cluster(Protocol):
    """A running backend."""

    nodes: Mapping[str, Node]
    links: Sequence[Link]
    versions: Mapping[str, str]  # {"redis": "8.0.2", "toxiproxy": "2.12.0"}

    def endpoints(self, worker: int) -> Sequence[Mapping[str, Any]]:
        """What worker ``worker`` connects to: [{"name": "redis", "host": ..., "port": ...}].

        ``address`` ("redis:6379"), where real servers are: what a server says of itself to others.
        A client that is told such an address by a server must go to the host and port beside it.
        """

    def primary(self) -> str:
        """Name of the node that grants now, found by asking.

        HarnessError if there is none now, and always where each node grants for itself (the
        backend's ``no_primary`` says so): any of them answers, none decides.
        """

    def collect_logs(self, into: Path) -> None:
        """Copies each node's log to ``into/<node>.log``."""

    def down(self) -> None:
        """Stops and removes everything (containers, networks, volumes, processes, data)."""


class Ledger(Protocol):
    """The append-only record of faults and of all that must be undone (``faults.jsonl``)."""

    def promise(self, steps: Sequence[Step], *, why: str) -> int:
        """Writes undo steps (fsync) *before* the thing is done; returns their number."""

    def done(self, promise: int) -> None:
        """Marks a promise as kept: its steps need not be replayed."""


class Runtime(Protocol):
    """A way to run servers: ``docker``, ``process`` or ``sim``."""

    name: str

    def can(self, backend: str) -> str | None:
        """None if this backend can run here, else the reason and the fix."""

    def up(
        self,
        backend: str,
        options: Mapping[str, Any],
        *,
        workers: int,
        run_dir: Path,
        ledger: Ledger,
    ) -> Cluster:
        """Starts the cluster with one link per worker and node; returns when all is healthy.

        What it creates is promised to the ledger first, so that ``heal`` can remove it.
        """


class View(Protocol):
    """Who holds what *now*, as far as completed operations tell; aimed faults read it."""

    def holders(self) -> Sequence[int]:
        """Workers that believe they hold some lock, oldest grant first."""

    def waiters(self) -> Sequence[int]:
        """Workers with an acquire in flight, oldest first."""

    def granters(self) -> Sequence[str]:
        """Nodes that gave the oldest grant, as far as its client told."""


class Place(Protocol):
    """Where a fault would act, as far as it is known before anything starts."""

    @property
    def runtime(self) -> str: ...

    @property
    def backend(self) -> str: ...

    @property
    def peers(self) -> bool:
        """Do its nodes talk to each other?"""


class World(Place, Protocol):
    """What a fault can see and touch."""

    clock: Clock
    cluster: Cluster
    workers: Sequence[WorkerHandle]
    view: View


class Evidence(msgspec.Struct, frozen=True):
    """Proof that a fault bit (or that it healed): what was read back, in one sentence."""

    bit: bool
    says: str
    facts: dict[str, Any] = {}


@runtime_checkable
class Fault(Protocol):
    """One kind of fault, aimed at named targets.  Its life:

    ``can`` before anything starts -> ``undo`` steps go to the ledger -> ``inject`` ->
    ``evidence`` -> (duration) -> ``heal`` -> ``healed``.  A fault is stateless between calls but
    for what it keeps on ``self``; one object per injection.
    """

    kind: str
    acts_on: str  # worker | node | link

    def can(self, place: Place) -> str | None:
        """None if it can be done in this runtime on this backend, else the reason and the fix;
        asked before anything starts."""

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]: ...

    def inject(self, world: World, targets: Sequence[str]) -> None: ...

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence: ...

    def heal(self, world: World, targets: Sequence[str]) -> None: ...

    def healed(self, world: World, targets: Sequence[str]) -> Evidence: ...


class FaultWindow(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A fault as a checker sees it; times in ns since the start of the run, widest reading.

    on_ns, off_ns: from when it surely bit (evidence was read) to when its heal began.
    """

    id: int
    kind: str
    targets: list[str]
    start_ns: int
    end_ns: int | None = None  # None: never healed
    when: str = ""  # the aim: held, near-expiry ...
    bit: bool = False  # has evidence
    healed: bool = False  # verified after heal
    says: str = ""
    on_ns: int | None = None
    off_ns: int | None = None


class ResourceRecord(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One write as the protected resource saw it (resource.jsonl), in order of arrival.

    time: ns of CLOCK_MONOTONIC minus the start of the run.  seq counts from 1.
    """

    seq: int
    time: int
    key: str
    hold: str | None = None
    token: int | None = None
    value: Any = None
    accepted: bool = False
    why: str = ""


class CheckContext(msgspec.Struct, kw_only=True):
    """What a checker may know besides the history."""

    ttl_ns: int | None = None  # lease length, None = locks without a lease
    lease_kind: str = "ttl"  # what ends a silent holder's lock: ttl | session | connection | none
    drift_ppm: int = 0  # bound on the clock-rate error between worker and server
    enforced_deadline: bool = False  # does the client stop by itself when its TTL is over
    k: int = 1  # permits
    crashes: bool = False  # do workers die by the workload's own doing
    workers: int = 0
    together: int = 1  # so many workers, next to each other, are users of one process
    servers: tuple[str, ...] = ()  # all that clients talk to, by name; empty: not known
    resource_mode: str = ""  # unfenced | fenced | cas | "" (none)
    recovery_ms_max: int | None = None  # bound for liveness after the last fault healed
    grant_ms_max: int | None = None  # bound for a grant while a majority of servers is there
    belief_lag_ms_max: int | None = None  # bound for believing, awake, in a lock that is gone
    planned_faults: int = 0
    faults: list[FaultWindow] = []
    resource: list[ResourceRecord] = []
    failures: list[str] = []  # of the harness itself: heal, logs, teardown, dead workers
    initial: Any = None


class Checker(Protocol):
    """A pure function of a history; it never raises out and never says TRUE of nothing."""

    name: str
    safety: bool

    def check(self, history: History, context: CheckContext) -> Result: ...
