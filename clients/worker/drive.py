"""The two drivers of a worker with one client: blocking, or on an event loop.

    drive(channel, session)         # until stdin ends or SIGTERM comes; then the client is closed

Each takes one request after the other: reads it, calls the library between two stamps, answers.
What drives several users of one client is in together.py; it is made of the same parts.

Trap: whatever the library raises is an outcome, SystemExit too; only ``Stop`` (SIGTERM) is ours.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from clients.worker.channel import READ_BYTES, Channel, Stop
from clients.worker.session import BadRequest, Session, describe

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCKING = ("write", "read")  # on a socket: on a loop they would hold up the library's own renewal
now = time.monotonic_ns


def parse_line(line: bytes) -> dict[str, Any]:
    """A request object with a positive integer ``id``; BadRequest for anything else."""
    try:
        request = json.loads(line)
    except ValueError as error:
        raise BadRequest(f"not JSON ({error}): {line[:200]!r}") from error
    if not isinstance(request, dict) or type(request.get("id")) is not int or request["id"] < 1:
        raise BadRequest(f"not an object with a positive integer id: {line[:200]!r}")
    return request


def read_request(channel: Channel, line: bytes) -> dict[str, Any] | None:
    """The request on a line; None, after an event ``log``, if it is none."""
    try:
        return parse_line(line)
    except BadRequest as error:
        if line.strip():
            channel.log(f"ignored a line: {error}")
        return None


def begin(channel: Channel, session: Session, request: dict[str, Any] | None) -> Any:
    """(request, call, finish), or None if it was answered already because it is wrong."""
    if request is None:
        return None
    try:
        return (request, *session.prepare(request))
    except BadRequest as error:
        at = now()
        reply = {"id": request["id"], "type": "fail", "error": str(error)}
        channel.send({**reply, "invoke": at, "complete": at})
        return None


def timed(call: Callable[[], Any]) -> tuple[tuple[int, int], Any, BaseException | None]:
    """Calls and stamps; whatever the library raises (SystemExit too) is an outcome."""
    invoke = now()
    try:
        result = call()
    except Stop:
        raise
    except BaseException as error:
        return (invoke, now()), None, error
    return (invoke, now()), result, None


def carry_out(channel: Channel, session: Session, request: dict[str, Any] | None) -> None:
    """One request, from its check to its reply."""
    begun = begin(channel, session, request)
    if begun is not None:
        request, call, finish = begun
        times, result, error = timed(call)
        channel.send(session.answer(request, times, result, error, finish))
        session.replied()


def drive(channel: Channel, session: Session) -> None:
    """Serves one session with a blocking client."""
    try:
        for line in channel.lines():
            carry_out(channel, session, read_request(channel, line))
    except Stop:
        pass
    if session.is_open:
        _, _, error = timed(session.client.close)
        report(error)


async def carry_out_async(
    channel: Channel, session: Session, request: dict[str, Any] | None
) -> None:
    """The same on the loop."""
    import asyncio

    begun = begin(channel, session, request)
    if begun is None:
        return
    request, call, finish = begun
    if request["do"] in BLOCKING:
        loop = asyncio.get_running_loop()
        times, result, error = await loop.run_in_executor(None, timed, call)
    else:
        times, result, error = await timed_async(call)
    channel.send(session.answer(request, times, result, error, finish))
    session.replied()


def drive_async(channel: Channel, session: Session) -> None:
    import asyncio  # slow to import, so only where it is needed

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    with contextlib.suppress(Stop):
        loop.run_until_complete(serve(channel, session))
    if session.is_open:
        _, _, error = loop.run_until_complete(timed_async(session.client.close))
        report(error)


async def serve(channel: Channel, session: Session) -> None:
    """Serves one session until EOF."""
    import asyncio

    loop = asyncio.get_running_loop()
    lines = AsyncLines(channel, loop)
    while True:
        line = await lines.next()
        if line is None:
            return
        await carry_out_async(channel, session, read_request(channel, line))


class AsyncLines:
    """Lines of a channel on an event loop; ``next`` gives None at EOF.

    asyncio's own pipe transport would do, but takes 256 KiB of fresh memory for every read, which
    costs three times as much as the rest of a request.
    """

    def __init__(self, channel: Channel, loop: Any) -> None:
        self._channel = channel
        self._loop = loop
        self._waiter: Any = None
        self._ended = False
        self._error: ValueError | None = None
        loop.add_reader(channel.requests_fd, self._readable)

    async def next(self) -> bytes | None:
        while not self._channel.unread:
            if self._error is not None:
                raise self._error
            if self._ended:
                return None
            self._waiter = self._loop.create_future()
            await self._waiter
        return self._channel.unread.pop(0)

    def _readable(self) -> None:
        data = os.read(self._channel.requests_fd, READ_BYTES)
        try:
            self._channel.unread += self._channel.buffer.split(data)
        except ValueError as error:  # raised here, the loop would log it and go on
            self._error = error
        if not data or self._error is not None:
            self._ended = True
            self._loop.remove_reader(self._channel.requests_fd)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def timed_async(
    call: Callable[[], Any],
) -> tuple[tuple[int, int], Any, BaseException | None]:
    invoke = now()
    try:
        result = call()
        if inspect.isawaitable(result):
            result = await result
    except Stop:
        raise
    except BaseException as error:
        return (invoke, now()), None, error
    return (invoke, now()), result, None


def report(error: BaseException | None) -> None:
    """What a close raised, for the log."""
    if error is not None:
        print(f"close raised {describe(error)}", file=sys.stderr)
