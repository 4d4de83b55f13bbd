"""What each request means to a simulated worker: from a request to an operation, and its value.

The same rules as in the real worker (clients/worker/session.py).  An operation is a generator of
commands: the recipe's, or one of ours for the resource (``("RESOURCE", message)``) and for what
needs no server.

    operation = session.begin(request)           # Refused if the request is wrong in itself
    value = session.keep(request, result)        # what the reply carries after success

Trap: a release of a hold that has no grant here is refused without the word ``not-held``: nobody
asked the server.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping
from typing import Any

from clients.recipes.base import Grant, Recipe
from clients.sim.node import NODE
from clients.sim.resource import SimResource
from clients.sim.store import Command
from clients.sim.truth import Truth
from harness.core.clock import NS_PER_MS
from harness.core.messages import Request

LOCAL_NS = 20_000  # what needs no server still costs the worker's own time
SOCKET_TIMEOUT_MS = 2_000
OPTIONS = ("poll_ms", "poll_ms_max", "socket_timeout_ms")

Operation = Generator[Command, Any, Any]


class Refused(Exception):
    """Surely no effect: a request that is wrong in itself, or the resource's refusal."""


class SimSession:
    """One client of the library with the grants it has got; ``timeout_ns`` limits each command."""

    def __init__(
        self,
        recipe: type[Recipe],
        library: str,
        *,
        resource: SimResource | None,
        now: Callable[[], int],
        rng: random.Random,
        truth: Truth | None,
    ) -> None:
        self.recipe_class, self.library = recipe, library
        self.timeout_ns: int | None = SOCKET_TIMEOUT_MS * NS_PER_MS
        self._resource, self._now, self._random, self._truth = resource, now, rng, truth
        self._recipe: Recipe | None = None
        self._grants: dict[str, Grant] = {}
        self._versions: dict[tuple[str | None, str | None], Any] = {}
        self._begin: Mapping[str, Callable[[Request], Operation]] = {
            "acquire": self._acquire,
            "release": self._release,
            "renew": self._renew,
            "believes": self._believes,
            "write": self._use_resource,
            "read": self._use_resource,
            "open": self._open,
            "close": self._close,
        }

    def begin(self, request: Request) -> Operation:
        """The operation that carries the request out; Refused says field, value and rule."""
        begin = self._begin.get(request.do)
        if begin is None:
            raise Refused(f"do is {request.do!r}; it must be one of {', '.join(self._begin)}")
        return begin(request)

    def keep(self, request: Request, result: Any, served_ns: int) -> Any:
        """Takes note of a success, whose last command was served at ``served_ns``."""
        do, hold = request.do, request.hold
        if self._truth is not None and hold is not None:
            self._truth.succeeded(request, result, served_ns)
        if do == "acquire":
            self._grants[hold] = result  # type: ignore[index]  # _acquire refuses None
            return {"owner": result.owner, "token": result.token, "nodes": [NODE]}
        if do == "release":
            del self._grants[hold]  # type: ignore[arg-type]  # _release refuses None
        return result

    def forget(self) -> None:
        """The session ends; the library's client is gone with all it knew."""
        self._recipe = None
        self._grants.clear()
        self._versions.clear()

    def powers(self) -> list[str]:
        """As the real worker's hello names them."""
        recipe = self.recipe_class
        powers = [
            ("renew", recipe.renewable),
            ("believes", True),
            ("fenced", recipe.fencing),
            ("read", recipe.reads),
            ("permits", recipe.permits),
        ]
        return [name for name, has in powers if has]

    def _acquire(self, request: Request) -> Generator[Command, Any, Grant]:
        recipe, key, hold, ttl_ms = self._recipe, request.key, request.hold, request.ttl_ms
        if recipe is None or key is None or hold is None:
            recipe, key, hold = self._opened(), self._key_of(request), self._hold_of(request)
        if ttl_ms is None:
            raise Refused("ttl_ms is missing; do 'acquire' needs it")
        if hold in self._grants:
            raise Refused(f"hold is {hold!r}, which was granted before; holds must be fresh")
        if request.mode is not None:
            if request.mode != "read" or not recipe.reads:
                raise Refused(f"mode is {request.mode!r}, which {self.library} cannot do")
            return recipe.acquire_read(key, ttl_ms, request.timeout_ms or 0)
        if request.k is not None:
            if not recipe.permits:
                raise Refused(f"k is {request.k}, and {self.library} has no permits")
            return recipe.acquire_permit(key, request.k, ttl_ms, request.timeout_ms or 0)
        return recipe.acquire(key, ttl_ms, request.timeout_ms or 0)

    def _release(self, request: Request) -> Generator[Command, Any, None]:
        grant = self._grant_of(request)
        if self._truth is not None:
            self._truth.released(self._hold_of(request), self._now())
        return self._opened().release(self._key_of(request), grant)

    def _renew(self, request: Request) -> Generator[Command, Any, None]:
        recipe = self._opened()
        if not recipe.renewable:
            raise Refused(f"do is 'renew', which {self.library} cannot do")
        if request.ttl_ms is None:
            raise Refused("ttl_ms is missing; do 'renew' needs it")
        return recipe.renew(self._key_of(request), self._grant_of(request), request.ttl_ms)

    def _believes(self, request: Request) -> Generator[Command, Any, bool]:
        return self._opened().believes(self._key_of(request), self._grant_of(request))

    def _use_resource(self, request: Request) -> Generator[Command, Any, Any]:
        if self._resource is None:
            raise Refused(f"do is {request.do!r}, but open named no resource")
        self._opened()
        key = self._key_of(request)
        expect = request.options.get("expect", self._versions.get((key, request.hold)))
        message = {
            "do": request.do,
            "key": key,
            "hold": request.hold,
            "token": request.token,
            "value": request.value,
            "expect": expect,
        }
        return self._exchange(message, request)

    def _exchange(
        self, message: Mapping[str, Any], request: Request
    ) -> Generator[Command, Any, dict[str, Any]]:
        reply = yield "RESOURCE", message
        if not reply["ok"]:
            raise Refused(reply["why"])
        self._versions[request.key, request.hold] = reply["version"]
        wanted = ("version", "seq") if request.do == "write" else ("value", "version")
        return {name: reply.get(name) for name in wanted}

    def _open(self, request: Request) -> Generator[Command, Any, None]:
        options = request.options.get("options") or {}
        strange = sorted(set(options) - set(OPTIONS))
        if strange:
            raise Refused(f"options.{strange[0]}: unknown option; known: {', '.join(OPTIONS)}")
        # An open session is closed first: after an unknown outcome nothing of it may live on.
        self.forget()
        limit_ms = options.get("socket_timeout_ms", SOCKET_TIMEOUT_MS)
        self.timeout_ns = limit_ms * NS_PER_MS if limit_ms else None
        self._recipe = self.recipe_class(self._now, self._random, options)
        return _local()

    def _close(self, request: Request) -> Generator[Command, Any, None]:
        self.forget()
        return _local()

    def _key_of(self, request: Request) -> str:
        if request.key is None:
            raise Refused(f"key is missing; do {request.do!r} needs it")
        return request.key

    def _hold_of(self, request: Request) -> str:
        if request.hold is None:
            raise Refused(f"hold is missing; do {request.do!r} needs it")
        return request.hold

    def _grant_of(self, request: Request) -> Grant:
        hold = self._hold_of(request)
        if hold not in self._grants:
            raise Refused(f"hold is {hold!r}, which has no grant in this worker")
        return self._grants[hold]

    def _opened(self) -> Recipe:
        if self._recipe is None:
            raise Refused("the client is not open; send open first")
        return self._recipe


def _local() -> Generator[Command, Any, None]:
    """An operation that needs no server."""
    yield "SLEEP", LOCAL_NS / NS_PER_MS
