"""portalocker: ``portalocker.RedisLock(channel, connection=, fencing=True, on_lost=)``.

There is no key: whoever is subscribed to the channel and answers for it holds the lock, and others
ask.  It lives as long as that connection; a fencing token comes from an INCR.

Facts, read in 4.4.2's ``redis.py``:

- ``on_lost`` is called from its own thread as soon as the subscription breaks.  By default the main
  thread is interrupted too (KeyboardInterrupt); here it is not (``interrupt_on_lost=False``).
- AlreadyLocked is raised after questions that were answered, but also after network trouble only;
  so it says "busy" if it was raised for an answer (``__cause__`` is None), else nothing.
- ``release`` drops the subscription and raises nothing for a lock that was lost: the loss stays in
  ``lost``, which the adapter reports as ``not-held`` (the server closed that connection).
- The connection stands on its own: no time-out of reading it unless the user sets one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import portalocker
from portalocker.exceptions import AlreadyLocked
from portalocker.redis import RedisLock

from clients.adapters import redis_one as one
from clients.worker.adapter import Definite, Grant, Lease, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clients.worker.adapter import Lost


class Portalocker(one.Blocking):
    """One RedisLock object per acquire attempt."""

    library = "portalocker"
    distributions = ("portalocker", "redis")
    lease = Lease("connection")
    fenced = True
    ERRORS: Mapping[type[BaseException], Definite] = {
        **one.OneRedis.ERRORS,
        portalocker.exceptions.LockException: Definite(),
    }

    def __init__(self) -> None:
        self._tell: Lost = lambda owner, why: None

    def watch(self, lost: Lost) -> None:
        self._tell = lost

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        lock: Any = RedisLock(
            key,
            connection=self.client,
            timeout=timeout_ms / 1000,
            check_interval=self.options.sleep_ms / 1000,
            fail_when_locked=timeout_ms <= 0,
            interrupt_on_lost=False,
            fencing=True,
            on_lost=lambda lost: self._tell(lost.holder_id, "its subscription broke"),
        )
        with self.sent():
            try:
                lock.acquire()
            except AlreadyLocked as error:
                if error.__cause__ is None:
                    raise Refused("busy") from error
                raise Refused(f"not acquired: {error.__cause__}") from error
        return Grant(owner=lock.holder_id, token=lock.fence_token, handle=lock)

    def release(self, grant: Grant) -> None:
        grant.handle.release()
        if grant.handle.lost:
            raise Refused("not-held")

    def believes(self, grant: Grant) -> bool:
        """The library's own flag; nobody is asked."""
        return not grant.handle.lost


ADAPTER = Portalocker
