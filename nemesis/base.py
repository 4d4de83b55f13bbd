"""What the faults share: finding targets, waiting for proof, putting proofs together.

A fault file then holds only what is its own:

    class Sever(LinkFault):
        kind, summary = "sever", "..."
        def _apply(self, link): ...
        def _bit(self, world, link): return Evidence(...)   # asked again until true or too late
        def _release(self, link): ...

Traps: no clock but ``world.clock`` (in the simulation it is virtual and moved on by probes); a
fault object lives for one injection, so it may keep on ``self`` what it saw before it acted;
``bit`` needs every target, because half a fault is not the fault that was asked for; ``heal``
touches only what ``inject`` touched, because a target that was refused may be in the hands of
another fault.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Protocol, TypeVar

from harness.core import limits
from harness.core.clock import ms
from harness.core.errors import HarnessError
from harness.core.protocols import Evidence, Link, Node, Place, Status, WorkerHandle, World
from harness.core.undo import Step
from nemesis.families import PREFIXES, family_of
from nemesis.params import Parameter, settle

_LOOKERS_MAX = 16  # threads that wait for an echo; more would disturb the clients' timing


class _Named(Protocol):
    name: str


T = TypeVar("T", bound=_Named)


class BaseFault(ABC):
    """Parameters, capabilities and the waiting of every fault.

    parameters: the table that scenarios are validated against.  runtimes: where it works.
    families: the servers it works on (``families.PREFIXES``), empty = all.  refused: runtime or
    family -> why it does not work there.
    """

    kind: str
    acts_on: str
    summary: ClassVar[str]
    alone: ClassVar[bool] = False  # its proof counts requests: look at one target at a time
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    runtimes: ClassVar[tuple[str, ...]] = ("docker", "process", "sim")
    families: ClassVar[tuple[str, ...]] = ()
    refused: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **params: Any) -> None:
        self.params = settle(type(self), params)
        self._touched: set[str] = set()  # names of the targets that ``inject`` laid hands on

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.params})"

    def can(self, place: Place) -> str | None:
        """None, or why not; known from the names of runtime and backend alone."""
        if place.runtime not in self.runtimes:
            return (
                f"fault {self.kind!r} cannot be done in the {place.runtime!r} runtime"
                f"{self._because(place.runtime)}; it works in: {', '.join(self.runtimes)}"
            )
        family = family_of(place.backend)
        if family in self.refused or (self.families and family not in self.families):
            others = self.families or sorted(set(PREFIXES.values()) - set(self.refused))
            return (
                f"fault {self.kind!r} is not for the backend {place.backend!r}"
                f"{self._because(family)}; it works on: {', '.join(others)}"
            )
        return None

    def _because(self, where: str) -> str:
        return f": {self.refused[where]}" if where in self.refused else ""

    def _mine(self, things: Sequence[T]) -> list[T]:
        """Those that this fault laid hands on."""
        return [thing for thing in things if thing.name in self._touched]

    def _prove(
        self,
        world: World,
        things: Sequence[T],
        look: Callable[[T], Evidence],
        timeout_ms: int = limits.EVIDENCE_TIMEOUT_MS,
    ) -> Evidence:
        """``prove`` that the fault bit; what it never touched is no proof, whatever it shows."""

        def own(thing: T) -> Evidence:
            return look(thing) if thing.name in self._touched else Evidence(False, "not injected")

        return prove(world, things, own, timeout_ms, alone=self.alone)

    @abstractmethod
    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]: ...

    @abstractmethod
    def inject(self, world: World, targets: Sequence[str]) -> None: ...

    @abstractmethod
    def evidence(self, world: World, targets: Sequence[str]) -> Evidence: ...

    @abstractmethod
    def heal(self, world: World, targets: Sequence[str]) -> None: ...

    @abstractmethod
    def healed(self, world: World, targets: Sequence[str]) -> Evidence: ...


class MachineFault(BaseFault):
    """Base of faults on workers and nodes; remembers who each was before the fault."""

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._before: dict[str, Status] = {}

    def _remember(self, machine: WorkerHandle | Node) -> None:
        """Notes state and identity; HarnessError if it is not running (nothing to hit)."""
        status = machine.status()
        if status.state != "running":
            raise HarnessError(
                f"{self.kind}: {machine.name} is {status.state}, so the fault would prove "
                "nothing; keep faults on one target apart in time"
            )
        self._before[machine.name] = status
        self._touched.add(machine.name)

    def _is_new(self, name: str, status: Status) -> bool:
        return name in self._before and status.identity != self._before[name].identity


class WorkerFault(MachineFault):
    """Base of faults on workers; targets are names of workers."""

    acts_on = "worker"

    def _workers(self, world: World, targets: Sequence[str]) -> list[WorkerHandle]:
        return pick(world.workers, targets, "worker")


class NodeFault(MachineFault):
    """Base of faults on servers; targets are names of nodes."""

    acts_on = "node"

    def _nodes(self, world: World, targets: Sequence[str]) -> list[Node]:
        return pick(world.cluster.nodes.values(), targets, "node")

    def healed(self, world: World, targets: Sequence[str]) -> Evidence:
        return prove(world, self._nodes(world, targets), node_answers, limits.HEAL_TIMEOUT_MS)


class LinkFault(BaseFault):
    """Base of faults on links; targets are names of links.

    between_nodes: does its proof hold for links between nodes, too?
    """

    acts_on = "link"
    between_nodes: ClassVar[bool] = False

    def _links(self, world: World, targets: Sequence[str]) -> list[Link]:
        return pick(world.cluster.links, targets, "link")

    def _clean_links(self, world: World, targets: Sequence[str]) -> list[Link]:
        """The targets; HarnessError if one is not clean.

        Two toxics on a stream disturb each other (compose/links.py), and a fault that finds
        another's effect would take it for its own.
        """
        links = self._links(world, targets)
        check_clean(self.kind, links)
        return links

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        return [step for link in self._links(world, targets) for step in link.undo()]

    def inject(self, world: World, targets: Sequence[str]) -> None:
        for link in self._clean_links(world, targets):
            self._touched.add(link.name)
            self._apply(link)

    @abstractmethod
    def _apply(self, link: Link) -> None:
        """Does it to one clean link."""

    def heal(self, world: World, targets: Sequence[str]) -> None:
        each(self._mine(self._links(world, targets)), self._release)

    @abstractmethod
    def _release(self, link: Link) -> None:
        """Takes back what ``_apply`` did, and no more; nothing happens if it is not there."""

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        def bit(link: Link) -> Evidence:
            return self._bit(world, link)

        return self._prove(world, self._links(world, targets), bit)

    @abstractmethod
    def _bit(self, world: World, link: Link) -> Evidence:
        """One look at one link; it is taken again until it is true or the time is over."""

    def healed(self, world: World, targets: Sequence[str]) -> Evidence:
        return prove(world, self._links(world, targets), link_clean, limits.HEAL_TIMEOUT_MS)


def pick(things: Iterable[T], names: Sequence[str], what: str) -> list[T]:
    """The things of these names, in the order of the names; HarnessError for a stranger."""
    by_name = {thing.name: thing for thing in things}
    strangers = [name for name in names if name not in by_name]
    if strangers:
        raise HarnessError(
            f"no {what} named {', '.join(strangers)}; there are: {', '.join(by_name) or 'none'}"
        )
    return [by_name[name] for name in names]


def prove(
    world: World,
    things: Sequence[T],
    look: Callable[[T], Evidence],
    timeout_ms: int,
    *,
    alone: bool = False,
) -> Evidence:
    """Looks at each thing until it shows what it should, ``timeout_ms`` for all together.

    ``bit`` if every one does; facts: {name: its facts}.  A HarnessError of a look counts as
    "not yet".  Looks run side by side (a silent echo takes its full time, and eight in a row would
    outlast the fault) unless ``alone``, or time is virtual.
    """
    deadline_ns = world.clock.now() + ms(timeout_ms)

    def wait(thing: T) -> Evidence:
        return _look_until(world, thing, look, deadline_ns)

    if alone or world.runtime == "sim" or len(things) < 2:
        found = [wait(thing) for thing in things]
    else:
        with ThreadPoolExecutor(max_workers=min(len(things), _LOOKERS_MAX)) as pool:
            found = list(pool.map(wait, things))
    return merge({thing.name: seen for thing, seen in zip(things, found, strict=True)})


def _look_until(
    world: World, thing: T, look: Callable[[T], Evidence], deadline_ns: int
) -> Evidence:
    while True:
        try:
            seen = look(thing)
        except HarnessError as error:
            seen = Evidence(False, str(error))
        now_ns = world.clock.now()
        if seen.bit or now_ns >= deadline_ns:
            return seen
        world.clock.sleep_until(min(deadline_ns, now_ns + ms(limits.LOOK_AGAIN_MS)))


def merge(found: Mapping[str, Evidence]) -> Evidence:
    """One evidence out of those of the targets; of no target at all it is false."""
    says = "; ".join(f"{name}: {evidence.says}" for name, evidence in found.items())
    return Evidence(
        bool(found) and all(evidence.bit for evidence in found.values()),
        says or "no target, so nothing was done",
        {name: evidence.facts for name, evidence in found.items()},
    )


def each(things: Sequence[T], act: Callable[[T], None], *, at_once: bool = False) -> None:
    """Acts on every thing, also after one failed; then one HarnessError with all reasons.

    at_once: side by side, for what one of them cannot finish without the others.
    """

    def failure(thing: T) -> str:
        try:
            act(thing)
        except HarnessError as error:
            return f"{thing.name}: {error}"
        return ""

    if at_once and len(things) > 1:
        with ThreadPoolExecutor(max_workers=min(len(things), _LOOKERS_MAX)) as pool:
            failures = [text for text in pool.map(failure, things) if text]
    else:
        failures = [text for text in map(failure, things) if text]
    if failures:
        raise HarnessError("; ".join(failures))


def node_answers(node: Node) -> Evidence:
    """Running by the system's word and answering an echo."""
    status, probe = node.status(), node.probe(limits.PROBE_TIMEOUT_MS)
    return Evidence(
        status.state == "running" and probe.outcome == "answered",
        f"server is {status.state}, echo {probe.outcome}",
        {"state": status.state, "identity": status.identity, "echo": probe.outcome},
    )


def link_clean(link: Link) -> Evidence:
    toxics, probe = link.toxics(), link.probe(limits.PROBE_TIMEOUT_MS)
    return Evidence(
        not toxics and probe.outcome == "answered",
        f"link {describe(toxics)}, echo {probe.outcome}",
        {"toxics": [dict(toxic) for toxic in toxics], "echo": probe.outcome},
    )


def check_clean(kind: str, links: Iterable[Link]) -> None:
    """HarnessError if one of them carries a toxic, or is disabled."""
    for link in links:
        toxics = link.toxics()
        if toxics:
            raise HarnessError(
                f"{kind}: link {link.name} is not clean ({describe(toxics)}); "
                "keep faults on one link apart in time"
            )


def describe(toxics: Sequence[Mapping[str, Any]]) -> str:
    """Toxics in words: "clean", "disabled" or "latency upstream"."""
    words = [
        "disabled" if toxic.get("enabled") is False else f"{toxic['type']} {toxic['stream']}"
        for toxic in toxics
    ]
    return ", ".join(words) or "clean"


def carries(link: Link, kind: str, *directions: str) -> bool:
    """True if the proxy lists toxics of this kind on exactly these streams."""
    listed = [toxic["stream"] for toxic in link.toxics() if toxic.get("type") == kind]
    return sorted(listed) == sorted(directions)


def server_of(world: World, link: Link) -> Node:
    """The node behind a link."""
    return pick(world.cluster.nodes.values(), [link.dst], "node")[0]
