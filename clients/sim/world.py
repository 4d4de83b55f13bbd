"""A whole simulated world in one call: clock, server, links, workers and resource.

    setup = build("recipe-redis", workers=4, seed=7, resource_mode="fenced")
    setup.pool.send(0, Request(1, "open", options={"nodes": [], "options": {}}))
    for event in setup.pool.poll(deadline_ns): ...

Everything that waits must wait on ``setup.clock``: that is what makes the world go on.  The same
arguments and the same calls give the same events, byte by byte.

Seeds: each link and each worker draws from a stream of its own (``sim/link/3``, ``sim/worker/3``),
so another worker or another option never shifts the choices of the rest.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import msgspec

from clients.recipes.base import Recipe
from clients.sim.clock import SimClock
from clients.sim.cluster import SimCluster
from clients.sim.pool import SimPool
from clients.sim.resource import SimResource
from clients.sim.session import SimSession
from clients.sim.truth import Truth
from clients.sim.worker import SimWorker
from harness.core.errors import UserError
from harness.core.messages import PoolEvent
from harness.core.rng import stream


class SimSetup(msgspec.Struct, frozen=True):
    """What a run needs.  ``resource`` is None with mode "none"; ``truth`` only where asked for."""

    clock: SimClock
    cluster: SimCluster
    pool: SimPool
    workers: list[SimWorker]
    resource: SimResource | None
    truth: Truth | None


def build(
    library: str | type[Recipe],
    *,
    workers: int,
    seed: int,
    resource_mode: str = "none",
    options: Mapping[str, Any] | None = None,
    truth: bool = False,
) -> SimSetup:
    """A world at time 0 whose workers are about to say hello.

    library: a name of LIBRARIES that has a simulated twin, or a recipe class.  options: of the
    backend (see ``cluster.OPTIONS``).  resource_mode: none | unfenced | fenced | cas.
    """
    recipe = library if isinstance(library, type) else recipe_of(library)
    name = library.__name__ if isinstance(library, type) else library
    clock = SimClock()
    cluster = SimCluster(clock, workers=workers, seed=seed, options=options)
    resource = None if resource_mode in ("", "none") else SimResource(resource_mode)
    facts = Truth(recipe.lease) if truth else None
    outbox: list[PoolEvent] = []
    team = [
        SimWorker(
            index,
            clock=clock,
            outbox=outbox,
            session=SimSession(
                recipe,
                name,
                resource=resource,
                now=clock.now,
                rng=stream(seed, f"sim/worker/{index}"),
                truth=facts,
            ),
            link=cluster.worker_links[index],
            resource=resource,
        )
        for index in range(workers)
    ]
    return SimSetup(clock, cluster, SimPool(clock, team, outbox), team, resource, facts)


def recipe_of(library: str) -> type[Recipe]:
    """The recipe behind a library; UserError if the library is no recipe."""
    from clients.registry import LIBRARIES

    where = LIBRARIES.load(library).extra.get("recipe", "")
    if not where:
        known = [name for name in LIBRARIES if LIBRARIES.load(name).extra.get("recipe")]
        raise UserError(
            f"client.library: {library!r} is real code that cannot run in virtual time; "
            f"on backend 'sim' use one of: {', '.join(known)}"
        )
    module, _, attribute = where.partition(":")
    recipe: type[Recipe] = getattr(importlib.import_module(module), attribute)
    assert issubclass(recipe, Recipe), f"{where} is no recipe"
    return recipe
