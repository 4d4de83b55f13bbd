"""pottery's Redlock: ``pottery.Redlock(key=, masters={...}, auto_release_time=)``.

The Redlock that is still maintained: all servers are asked at once, in threads, and the first
majority decides.  Renewal by hand (``extend``), at most three times unless told otherwise.

Facts, read in 3.0.1's ``redlock.py`` and ``executor.py``:

- Errors of single servers are logged and otherwise passed over; ``acquire`` that returns False
  has tried to delete its keys, and whether that worked is not told.  What may be left is counted
  at the connections (redlock_common.py).
- ``acquire`` and ``release`` return as soon as a majority answered, while requests to the slower
  servers are still on their way in background threads.
- ``ReleaseUnlockedLock`` and ``ExtendUnlockedLock`` mean "no majority confirmed"; that is the
  servers' word only if none of them failed, which ``redis_errors`` of the exception tells.
- ``TooManyExtensions`` is raised before anything is sent.
- ``locked()`` is 0 also when too few servers answer: the library then no longer believes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pottery

from clients.adapters import redlock_common as common
from clients.adapters.redis_common import seconds_for
from clients.worker.adapter import Definite, Grant, Lease, Refused, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# num_extensions: how often a grant may be extended (library's default).
OPTIONS: Mapping[str, int | None] = {"num_extensions": 3}


class PotteryRedlock:
    """One Redlock object per acquire attempt."""

    library = "pottery"
    distributions = ("pottery", "redis")
    lease = Lease("ttl")
    ERRORS: Mapping[type[BaseException], Definite] = {
        pottery.TooManyExtensions: Definite(),
        pottery.ExtendUnlockedLock: Definite("not-held"),  # if all answered, see ``renew``
    }

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        self.options = common.read_options(options, OPTIONS)
        self.voters, self.ballot = common.connect(nodes, self.options, is_release)

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        if ttl_ms is None:
            raise Refused("ttl_ms is missing; a Redlock needs it")
        lock = pottery.Redlock(
            key=key,
            masters=self.voters,
            auto_release_time=seconds_for(ttl_ms),
            num_extensions=self.options["num_extensions"],
        )
        self.ballot.begin()
        wait = {"timeout": timeout_ms / 1000} if timeout_ms > 0 else {"blocking": False}
        if not lock.acquire(**wait):
            self.ballot.refuse_acquire()
        return Grant(owner=lock._uuid, handle=lock)

    def release(self, grant: Grant) -> None:
        self.ballot.begin()
        try:
            grant.handle.release()
        except pottery.ReleaseUnlockedLock:
            self.ballot.judge_release(grant.owner)
            raise Unknown("pottery says not locked, but a majority deleted the key") from None

    def renew(self, grant: Grant, ttl_ms: int | None) -> None:
        if ttl_ms is not None:
            grant.handle.auto_release_time = seconds_for(ttl_ms)
        try:
            grant.handle.extend()
        except pottery.ExtendUnlockedLock as error:
            if error.redis_errors:
                raise Unknown(f"no majority extended it; errors: {error.redis_errors}") from error
            raise

    def believes(self, grant: Grant) -> bool:
        return bool(grant.handle.locked() > 0)

    def close(self) -> None:
        for voter in self.voters:
            voter.close()


def is_release(args: Sequence[Any]) -> bool:
    """True for the script that deletes a key of ours, among the library's three scripts."""
    script = pottery.Redlock._release_script
    return args[0] == "EVALSHA" and script is not None and args[1] == script.sha


ADAPTER = PotteryRedlock
