"""Any recipe on a real Redis: the very code that runs in the simulation, over redis-py.

    python -u clients/worker/main.py --adapter clients/adapters/recipe.py \
        --adapter-arg recipe=clients.recipes.redis_lock:RedisLock

redis-py is a plain connection here: no retries of its own, no library lock.  The recipe decides
every command.

Definite or not: ``Busy`` and ``NotHeld`` are the server's words.  A connection that was refused
before the operation had sent anything is definite, too.  Whatever else goes wrong is unknown, also
an error of the server, since an earlier command of the same operation may have taken effect.
"""

from __future__ import annotations

import hashlib
import importlib
import random
import time
from typing import TYPE_CHECKING, Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from clients.adapters.redis_common import choose_node, was_refused
from clients.recipes.base import (
    Busy,
    Grant,
    LinkLost,
    NotConnected,
    NotHeld,
    Recipe,
    Script,
    ServerError,
)
from clients.worker import adapter as contract

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from clients.recipes.base import Command

OPTIONS = ("poll_ms", "poll_ms_max", "socket_timeout_ms", "node")
SOCKET_TIMEOUT_MS = 2_000  # as in the simulation


class RecipeClient:
    """Drives a recipe's generators: sends what they yield, gives back what the server says."""

    distributions = ("redis",)
    ERRORS: Mapping[type[BaseException], contract.Definite] = {
        Busy: contract.Definite("busy"),
        NotHeld: contract.Definite("not-held"),
    }

    def __init__(self, recipe: type[Recipe]) -> None:
        self.recipe_class = recipe
        self.library = f"{recipe.__module__}:{recipe.__qualname__}"
        self.lease = contract.Lease(recipe.lease)
        self.fenced = recipe.fencing
        self._digests: dict[Script, str] = {}

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        """Refuses unknown options; connects at the first command."""
        check_options(options)
        node = choose_node(nodes, options.get("node"))
        limit_ms = options.get("socket_timeout_ms", SOCKET_TIMEOUT_MS)
        self.client = redis.Redis(
            host=node["host"],
            port=node["port"],
            client_name=f"lockhavoc-{node['port']}",  # by which a fault finds it at the server
            decode_responses=True,
            socket_timeout=limit_ms / 1000 if limit_ms else None,
            socket_connect_timeout=limit_ms / 1000 if limit_ms else None,
            retry=Retry(NoBackoff(), 0),
        )
        self.recipe = self.recipe_class(time.monotonic_ns, random.SystemRandom(), options)

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> contract.Grant:
        if ttl_ms is None:
            raise contract.Refused("ttl_ms is missing; a recipe needs it")
        return self._granted(key, self.recipe.acquire(key, ttl_ms, timeout_ms))

    def _granted(self, key: str, operation: Generator[Command, Any, Grant]) -> contract.Grant:
        granted: Grant = self._drive(operation)
        return contract.Grant(granted.owner, granted.token, handle=(key, granted))

    def release(self, grant: contract.Grant) -> None:
        self._drive(self.recipe.release(*grant.handle))

    def believes(self, grant: contract.Grant) -> bool:
        return bool(self._drive(self.recipe.believes(*grant.handle)))

    def close(self) -> None:
        self.client.close()

    def _drive(self, operation: Generator[Command, Any, Any]) -> Any:
        """Runs one operation to its end and returns what it returns."""
        resume: Callable[[Any], Command] = operation.send
        value: Any = None
        sent = 0
        while True:
            try:
                command = resume(value)
            except StopIteration as done:
                return done.value
            except NotConnected as lost:
                if sent == 1:
                    raise contract.Refused(f"cannot connect: {lost}") from lost
                raise
            sent += command[0] != "SLEEP"
            try:
                resume, value = operation.send, self._carry_out(command)
            except (LinkLost, ServerError) as error:
                resume, value = operation.throw, error

    def _carry_out(self, command: Command) -> Any:
        if command[0] == "SLEEP":
            time.sleep(command[1] / 1000)
            return None
        try:
            if command[0] == "EVAL":
                return self._run_script(*command[1:])
            return self.client.execute_command(*command)  # type: ignore[no-untyped-call]  # redis
        except (redis.ConnectionError, redis.TimeoutError) as error:
            kind = NotConnected if was_refused(error) else LinkLost
            raise kind(str(error)) from error
        except redis.ResponseError as error:
            raise ServerError(str(error)) from error

    def _run_script(self, script: Script, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """EVALSHA, and EVAL where the server has not seen the script (also after a restart)."""
        digest = self._digests.get(script)
        if digest is not None:
            try:
                return self.client.evalsha(digest, len(keys), *keys, *args)
            except redis.exceptions.NoScriptError:
                pass  # nothing ran: the same script in full
        else:
            lua = script.lua.encode()
            self._digests[script] = hashlib.sha1(lua).hexdigest()  # noqa: S324 - Redis' own name
        return self.client.eval(script.lua, len(keys), *keys, *args)


class ReadingRecipeClient(RecipeClient):
    """The same for recipes that readers may share."""

    def acquire_read(self, key: str, ttl_ms: int | None, timeout_ms: int) -> contract.Grant:
        if ttl_ms is None:
            raise contract.Refused("ttl_ms is missing; a recipe needs it")
        return self._granted(key, self.recipe.acquire_read(key, ttl_ms, timeout_ms))


class CountingRecipeClient(RecipeClient):
    """The same for recipes with permits."""

    def acquire_permit(
        self, key: str, k: int, ttl_ms: int | None, timeout_ms: int
    ) -> contract.Grant:
        if ttl_ms is None:
            raise contract.Refused("ttl_ms is missing; a recipe needs it")
        return self._granted(key, self.recipe.acquire_permit(key, k, ttl_ms, timeout_ms))


class RenewableRecipeClient(RecipeClient):
    """The same for recipes that can renew."""

    def renew(self, grant: contract.Grant, ttl_ms: int | None) -> None:
        if ttl_ms is None:
            raise contract.Refused("ttl_ms is missing; a recipe needs it")
        key, granted = grant.handle
        self._drive(self.recipe.renew(key, granted, ttl_ms))


def check_options(options: Mapping[str, Any]) -> None:
    """Refused names the first option that is unknown or no number."""
    for name, value in options.items():
        if name not in OPTIONS:
            raise contract.Refused(f"option {name!r} is unknown (known: {', '.join(OPTIONS)})")
        if name != "node" and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise contract.Refused(f"option {name} is {value!r}; it must be a number of ms")


def make(recipe: str) -> RecipeClient:
    """The client for the recipe class at ``recipe`` ("module:Class")."""
    module, _, name = recipe.partition(":")
    recipe_class = getattr(importlib.import_module(module), name)
    powers = [
        (RenewableRecipeClient, recipe_class.renewable),
        (ReadingRecipeClient, recipe_class.reads),
        (CountingRecipeClient, recipe_class.permits),
    ]
    bases = tuple(power for power, has in powers if has) or (RecipeClient,)
    made: RecipeClient = type("ThisRecipeClient", bases, {})(recipe_class)
    return made


ADAPTER = make
