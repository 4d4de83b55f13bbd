"""Clients of a deadlock: none of them tries again until somebody has resolved it.

    options = Options(halts=FileHalts("/run/lock/orders.halts"))      # processes of one machine
    options = Options(halts=RedisHalts(Redis("redis://127.0.0.1:6379")))
    options.halts.resolve(["w1", "w2"])

Each loop asks before every attempt.  Traps: a client is known by its ``requester_id``, which must
be one across all processes.  A board that cannot be read halts nobody (a warning is logged): a
halt saves useless attempts, it does not make the lock safe.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from clients.retry.redis_link import Redis
from harness.core.errors import UserError

LOG = logging.getLogger("lockhavoc.retry")
REDIS_KEY = "lockhavoc:retry:halts"


class Board(Protocol):
    """Where it stands who is halted."""

    def halt(self, clients: Iterable[str], why: str) -> None:
        """Halts these clients; a second reason does not replace the first."""

    def resolve(self, clients: Iterable[str] | None = None) -> int:
        """Lets these clients (or all) go on; how many were halted."""

    def all(self) -> Mapping[str, str]:
        """Who is halted, and why."""

    def why(self, client: str) -> str | None:
        """Why a client is halted; None if it is not."""


class Halts:
    """Within one process."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._halted: dict[str, str] = {}

    def halt(self, clients: Iterable[str], why: str) -> None:
        with self._guard:
            for client in clients:
                self._halted.setdefault(client, why)

    def resolve(self, clients: Iterable[str] | None = None) -> int:
        with self._guard:
            names = list(self._halted) if clients is None else list(clients)
            return sum(self._halted.pop(client, None) is not None for client in names)

    def all(self) -> Mapping[str, str]:
        with self._guard:
            return dict(self._halted)

    def why(self, client: str) -> str | None:
        with self._guard:
            return self._halted.get(client)


class FileHalts:
    """In a file that processes of one machine share; made at the first halt, for its owner only."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def halt(self, clients: Iterable[str], why: str) -> None:
        names = list(clients)
        self._change(lambda halted: {**dict.fromkeys(names, why), **halted})

    def resolve(self, clients: Iterable[str] | None = None) -> int:
        if not self.path.exists():
            return 0
        names = None if clients is None else set(clients)
        before, after = self._change(
            lambda halted: {k: v for k, v in halted.items() if names is not None and k not in names}
        )
        return len(before) - len(after)

    def all(self) -> Mapping[str, str]:
        try:
            with self.path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                return self._read(file.read())
        except FileNotFoundError:
            return {}

    def why(self, client: str) -> str | None:
        return self.all().get(client)

    def _change(
        self, changed: Callable[[Mapping[str, str]], dict[str, str]]
    ) -> tuple[Mapping[str, str], Mapping[str, str]]:
        # Changed in place and not renamed over: others may wait for the lock of this very file.
        with open(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            before = self._read(file.read())
            after = changed(before)
            file.seek(0)
            file.write(json.dumps(after).encode())
            file.truncate()
        return before, after

    def _read(self, raw: bytes) -> Mapping[str, str]:
        if not raw:
            return {}
        try:
            halted = json.loads(raw)
        except ValueError as error:
            raise UserError(f"{self.path}: not a file of halts: {error}") from error
        if not isinstance(halted, dict) or not all(isinstance(v, str) for v in halted.values()):
            raise UserError(f"{self.path}: not a file of halts: must be an object of strings")
        return halted


class RedisHalts:
    """In a hash of a Redis or Valkey server, for processes on many machines."""

    def __init__(self, redis: Redis, key: str = REDIS_KEY) -> None:
        self._redis, self._key = redis, key

    def halt(self, clients: Iterable[str], why: str) -> None:
        for client in clients:
            self._redis.call("HSETNX", self._key, client, why)

    def resolve(self, clients: Iterable[str] | None = None) -> int:
        names = list(self.all()) if clients is None else list(clients)
        # One by one: who was halted meanwhile stays halted.
        return sum(int(self._redis.call("HDEL", self._key, name)) for name in names)

    def all(self) -> Mapping[str, str]:
        flat = self._redis.call("HGETALL", self._key)
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def why(self, client: str) -> str | None:
        found = self._redis.call("HGET", self._key, client)
        return None if found is None else str(found)
