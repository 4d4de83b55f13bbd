"""Whom a fault hits: a target spec plus the world as it is now gives a list of names.

    resolve("holder", "worker", world, rng)           # ["w3"], or [] if nobody holds a lock now
    resolve("holder", "link", world, rng)             # every link of that worker
    resolve("primary", "link", world, rng)            # every link to that node
    resolve("holder/primary", "link", world, rng)     # the one link between the two
    resolve("primary/all-nodes", "link", world, rng)  # how the primary dials the other nodes

Specs: worker aims ``holder`` (oldest grant), ``waiter`` (longest waiting), ``any-worker``,
``all-workers``, ``worker:N``; node aims ``primary``, ``granter`` (where the holder
got its lock), ``any-node``, ``all-nodes``, ``node:NAME``,
``minority`` (as many as can go without breaking a majority: two of five) and ``majority`` (three
of five), drawn anew each time from the nodes whose majority decides: with Sentinel those are the
sentinels, not the servers that they watch.
Node aims can be joined: ``primary+node:sentinel1``.  A fault on links takes a worker aim, a node
aim (the links of all workers to it), ``worker aim/node aim`` or ``node aim/node aim``.

Traps: aims are of the moment, so resolve as late as possible.  A worker that died or that the
view knows but the world does not is no target.  ``[]`` means "not now", never "nothing to do":
the caller waits and asks again.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence

from harness.core import limits
from harness.core.errors import HarnessError
from harness.core.protocols import Node, Voting, WorkerHandle, World

WORKER_AIMS = ("holder", "waiter", "any-worker", "all-workers")
NODE_AIMS = ("primary", "granter", "any-node", "minority", "majority", "all-nodes")
_WORKER_PREFIX, _NODE_PREFIX = "worker:", "node:"
_JOIN = "+"


def target_problem(acts_on: str, target: str) -> str | None:
    """None if ``target`` suits a fault that acts on ``acts_on``, else one line with the fix."""
    takes_workers = acts_on in ("worker", "link")
    takes_nodes = acts_on in ("node", "link")
    if acts_on == "link" and "/" in target:
        source, _, node = target.partition("/")
        first = _node_problem if _is_node_aim(source) else _worker_problem
        return first(source) or _node_problem(node)
    if _is_worker_aim(target):
        return _worker_problem(target) if takes_workers else _misfit(acts_on, target)
    if _is_node_aim(target):
        return _node_problem(target) if takes_nodes else _misfit(acts_on, target)
    return f"unknown target {target!r}; {_known(acts_on)}"


def resolve(target: str, acts_on: str, world: World, rng: random.Random) -> list[str]:
    """Names of what ``target`` means now, in a stable order; [] if nobody matches now.

    Raises ValueError for a spec that ``target_problem`` would complain about.
    """
    problem = target_problem(acts_on, target)
    if problem:
        raise ValueError(problem)
    if acts_on == "worker":
        return _workers(target, world, rng)
    if acts_on == "node":
        return _nodes(target, world, rng)
    source, _, node = target.partition("/")
    if not node and _is_node_aim(source):
        source, node = "", source
    sources = {link.src for link in world.cluster.links} - set(world.cluster.nodes)
    if _is_node_aim(source):
        sources = set(_nodes(source, world, rng))
    elif source:
        sources = set(_workers(source, world, rng))
    goals = set(_nodes(node, world, rng)) if node else set(world.cluster.nodes)
    return [link.name for link in world.cluster.links if link.src in sources and link.dst in goals]


def between_nodes(target: str) -> bool:
    """True if the target is links from nodes to nodes."""
    source, _, node = target.partition("/")
    return bool(node) and _is_node_aim(source)


def _workers(aim: str, world: World, rng: random.Random) -> list[str]:
    by_index = dict(enumerate(world.workers))
    if aim in ("holder", "waiter"):
        view = world.view.holders() if aim == "holder" else world.view.waiters()
        return _first(view, by_index)
    if aim.startswith(_WORKER_PREFIX):
        return _first([int(aim.removeprefix(_WORKER_PREFIX))], by_index)
    # Several workers may be users of one process, which is hit once.
    names = list(dict.fromkeys(worker.name for worker in _alive(world.workers)))
    if aim == "any-worker":
        return [rng.choice(names)] if names else []
    return names


def _first(indexes: Sequence[int], by_index: dict[int, WorkerHandle]) -> list[str]:
    """The first of ``indexes`` that is a worker of this world and lives."""
    for index in indexes:
        worker = by_index.get(index)
        if worker is not None and worker.status().state != "dead":
            return [worker.name]
    return []


def _alive(workers: Sequence[WorkerHandle]) -> list[WorkerHandle]:
    return [worker for worker in workers if worker.status().state != "dead"]


def _nodes(aim: str, world: World, rng: random.Random) -> list[str]:
    names = list(world.cluster.nodes)
    if _JOIN in aim:
        joined = {name for part in aim.split(_JOIN) for name in _nodes(part, world, rng)}
        return [name for name in names if name in joined]
    if aim == "primary":
        with contextlib.suppress(HarnessError):  # nobody answers: there is no primary now
            return [world.cluster.primary()]
        return []
    if aim == "granter":
        granters = world.view.granters()
        return [name for name in names if name in granters]
    if aim == "any-node":
        return [rng.choice(names)] if names else []
    if aim == "all-nodes":
        return names
    if aim in ("minority", "majority"):
        voters = [name for name in names if _votes(world.cluster.nodes[name])]
        majority = len(voters) // 2 + 1
        drawn = rng.sample(voters, majority if aim == "majority" else len(voters) - majority)
        return [name for name in names if name in drawn]
    name = aim.removeprefix(_NODE_PREFIX)
    return [name] if name in names else []


def _votes(node: Node) -> bool:
    return not isinstance(node, Voting) or node.votes


def _is_worker_aim(aim: str) -> bool:
    return aim in WORKER_AIMS or aim.startswith(_WORKER_PREFIX)


def _is_node_aim(aim: str) -> bool:
    return all(a in NODE_AIMS or a.startswith(_NODE_PREFIX) for a in aim.split(_JOIN))


def _worker_problem(aim: str) -> str | None:
    number = aim.removeprefix(_WORKER_PREFIX)
    if not _is_worker_aim(aim):
        return f"unknown worker aim {aim!r}; {_known('worker')}"
    if aim.startswith(_WORKER_PREFIX) and not (
        number.isascii() and number.isdigit() and int(number) < limits.WORKERS_MAX
    ):
        return f"{aim!r} names no worker; write worker:N with N from 0 to {limits.WORKERS_MAX - 1}"
    return None


def _node_problem(aim: str) -> str | None:
    if not _is_node_aim(aim):
        return f"unknown node aim {aim!r}; {_known('node')}"
    if _NODE_PREFIX in aim.split(_JOIN):
        return f"{aim!r} names no node; write node:NAME, for example node:redis"
    return None


def _misfit(acts_on: str, target: str) -> str:
    return f"{target!r} does not suit a fault that acts on a {acts_on}; {_known(acts_on)}"


def _known(acts_on: str) -> str:
    workers = f"{', '.join(WORKER_AIMS)}, worker:N"
    nodes = f"{', '.join(NODE_AIMS)}, node:NAME"
    known = {
        "worker": workers,
        "node": nodes,
        "link": f"{workers}, {nodes}, or worker aim/node aim, or node aim/node aim",
    }
    return f"use one of: {known[acts_on]}"
