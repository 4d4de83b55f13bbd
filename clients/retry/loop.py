"""Acquire a lock with decisions in between: try, decide, sleep, again, inside a hard budget.

    request = Request("orders", requester_id="w1", budget_ms=30_000, ttl_ms=10_000)
    with RetryLoop(request, lambda: lock.acquire(blocking=False), release=lambda _: lock.release()):
        ...                                            # Escalated or Abandoned if there is no lock

``acquire`` makes *one* attempt without waiting: a true value is the grant, a false one a refusal;
exceptions of lock libraries are refusals with their reason (``libraries``), others pass through.
Trap: whoever stops waiting may still stand in a queue or hold the lock after a lost answer.
``withdraw`` is called whenever the loop ends without a grant, also by Ctrl-C or cancellation; it
must remove both, and may be called when there is nothing to remove.

``notice`` waits at most so many seconds for word that it is this client's turn (a watch, a message
of its own; not one that all waiters get, which would make a herd) and says whether it came.  Word
ends a sleep, but never before the floor, and none may be relied on.  Let ``observe`` give
``release_notice``, and the rules ask less often by themselves.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Generic, TypeVar

from clients.retry.libraries import failure_of
from clients.retry.record import Request
from clients.retry.waiting import BUSY, Cancelled, Options, Waiting
from harness.core.clock import NS_PER_S

T = TypeVar("T")
R = TypeVar("R")
NOTICE_SLICE_S = 1.0  # how long after ``cancel`` a wait for word may go on


class RetryLoop(Generic[T]):
    """The loop for threads.  ``sleep`` takes seconds; the default wakes up on ``cancel``."""

    def __init__(
        self,
        request: Request,
        acquire: Callable[[], T | None],
        *,
        release: Callable[[T], object] | None = None,
        withdraw: Callable[[], object] | None = None,
        options: Options | None = None,
        sleep: Callable[[float], object] | None = None,
        notice: Callable[[float], bool] | None = None,
    ) -> None:
        self.request = request
        self.options = options or Options()
        self._acquire, self._release, self._withdraw = acquire, release, withdraw
        self._cancel = threading.Event()
        self._sleep = sleep or self._cancel.wait
        self._notice = notice
        self._grant: T | None = None

    def run(self) -> T:
        """The grant; Escalated, Abandoned or Cancelled without one."""
        waiting = Waiting(self.request, self.options)
        try:
            while True:
                if self._cancel.is_set():
                    raise Cancelled(f"waiting for {self.request.lock_name!r} was cancelled")
                failure = waiting.check_halt()
                if failure is None:
                    try:
                        grant = self._acquire()
                    except Exception as error:
                        failure = failure_of(error)
                        if failure is None:
                            raise
                    else:
                        if grant:
                            waiting.ended("acquired")
                            return grant
                        failure = BUSY
                self._pause(waiting, waiting.refused(failure))
        except BaseException as error:
            if self._withdraw is not None:
                self._withdraw()
            if isinstance(error, Cancelled | KeyboardInterrupt):
                waiting.ended("cancelled")
            raise

    def _pause(self, waiting: Waiting, pause_ns: int) -> None:
        if self._notice is None:
            self._sleep(pause_ns / NS_PER_S)
            return
        end_ns = waiting.options.clock.now() + pause_ns
        self._sleep(waiting.floor_ns / NS_PER_S)
        while (left_ns := end_ns - waiting.options.clock.now()) > 0 and not self._cancel.is_set():
            try:
                if self._notice(min(left_ns / NS_PER_S, NOTICE_SLICE_S)):
                    return
            except Exception as error:
                if failure_of(error) is None:
                    raise
                left_ns = end_ns - waiting.options.clock.now()
                self._sleep(max(0, left_ns) / NS_PER_S)  # no word will come: the decision stands
                return

    def cancel(self) -> None:
        """Ends the waiting, from any thread."""
        self._cancel.set()

    def __enter__(self) -> T:
        self._grant = self.run()
        return self._grant

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._release is not None and self._grant is not None:
            grant, self._grant = self._grant, None
            self._release(grant)


class AsyncRetryLoop(Generic[T]):
    """The loop for asyncio; cancelling the task that waits is enough.

    Deciders that take time (programs, models) and boards of halts outside of the process belong
    into a thread: ``in_thread=True``.
    """

    def __init__(
        self,
        request: Request,
        acquire: Callable[[], Awaitable[T | None]],
        *,
        release: Callable[[T], Awaitable[object]] | None = None,
        withdraw: Callable[[], Awaitable[object]] | None = None,
        options: Options | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        notice: Callable[[float], Awaitable[bool]] | None = None,
        in_thread: bool = False,
    ) -> None:
        self.request = request
        self.options = options or Options()
        self._acquire, self._release, self._withdraw = acquire, release, withdraw
        self._sleep, self._notice = sleep, notice
        self._in_thread = in_thread
        self._grant: T | None = None

    async def run(self) -> T:
        """The grant; Escalated or Abandoned without one."""
        waiting = Waiting(self.request, self.options)
        try:
            while True:
                failure = await self._call(waiting.check_halt)
                if failure is None:
                    try:
                        grant = await self._acquire()
                    except Exception as error:
                        failure = failure_of(error)
                        if failure is None:
                            raise
                    else:
                        if grant:
                            waiting.ended("acquired")
                            return grant
                        failure = BUSY
                pause_ns = await self._call(partial(waiting.refused, failure))
                await self._pause(waiting, pause_ns)
        except BaseException as error:
            if self._withdraw is not None:
                # A second cancellation must not leave a ghost in the queue.
                await asyncio.shield(asyncio.ensure_future(self._withdraw()))
            if isinstance(error, asyncio.CancelledError):
                waiting.ended("cancelled")
            raise

    async def _call(self, function: Callable[[], R]) -> R:
        return await asyncio.to_thread(function) if self._in_thread else function()

    async def _pause(self, waiting: Waiting, pause_ns: int) -> None:
        if self._notice is None:
            await self._sleep(pause_ns / NS_PER_S)
            return
        end_ns = waiting.options.clock.now() + pause_ns
        await self._sleep(waiting.floor_ns / NS_PER_S)
        while (left_ns := end_ns - waiting.options.clock.now()) > 0:
            try:
                if await self._notice(left_ns / NS_PER_S):
                    return
            except Exception as error:
                if failure_of(error) is None:
                    raise
                left_ns = end_ns - waiting.options.clock.now()
                await self._sleep(max(0, left_ns) / NS_PER_S)
                return

    async def __aenter__(self) -> T:
        self._grant = await self.run()
        return self._grant

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._release is not None and self._grant is not None:
            grant, self._grant = self._grant, None
            await asyncio.shield(asyncio.ensure_future(self._release(grant)))
