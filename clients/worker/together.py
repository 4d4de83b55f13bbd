"""Drives several users of one client: threads, tasks of one loop, or forked children.

    serve(channel, make, client, sharing)      # until stdin ends or SIGTERM comes

Each user has a ``Session`` (its own holds, its own connection to the resource) and serves one
request at a time; requests of different users run side by side, replies come as they are ready.
A thread or a task stays the same for all requests of its user: locks keep tokens in thread-local
storage and in context variables.

Forked: the worker itself is user 0.  With ``open`` of another user it forks a child, which goes on
with the client as it was at that moment, connection and lock objects included.  Before that, user
0's ``open`` takes and gives back a lock of its own name, so that there is a connection to inherit.
The child reads requests that a thread of the worker hands on, and answers by itself.  Its ``close``
is its end, and a later ``open`` forks another.

Traps.  Children write to the same pipe as the worker: only lines of at most PIPE_BUF bytes stay
whole, and replies are far below that.  Python warns of a fork beside threads; those here wait in a
read and hold no lock.  A child must let go of the worker's own pipes, or nobody would see its end.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

from clients.worker import users
from clients.worker.adapter import Refused, Unknown
from clients.worker.channel import Channel, Stop, guard
from clients.worker.drive import (
    AsyncLines,
    carry_out,
    carry_out_async,
    read_request,
    report,
    timed,
    timed_async,
)
from clients.worker.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

WARM_KEY = "lockhavoc-before-fork"
WARM_TTL_MS = 10_000
USERS_MAX = 64

Inbox = Any  # queue.SimpleQueue of requests, None at the end


def asked(line: bytes | None) -> Any:
    """``sharing`` of a worker's first request, None if it says none."""
    try:
        request = json.loads(line or b"null")
    except ValueError:
        return None
    options = request.get("options") if isinstance(request, dict) else None
    return options.get("sharing") if isinstance(options, dict) else None


def serve(
    channel: Channel, make: Callable[[], Any], client: Any, sharing: Mapping[str, Any]
) -> None:
    """Serves the users that ``sharing`` names; ``users.refusal`` found nothing against it."""
    how: dict[str, Callable[..., _Driver]] = {"threads": _Threads, "tasks": _Tasks, "fork": _Forked}
    how[str(sharing["users"])](channel, make, client, sharing).run()


def _send(channel: Channel, user: int, message: dict[str, Any]) -> None:
    """An event by itself says whose it is."""
    channel.send({**message, "user": user} if user else message)


def _user(request: Mapping[str, Any]) -> int:
    user = request.get("user", 0)
    return user if type(user) is int and 0 <= user < USERS_MAX else 0


class _Driver:
    """What serves users until stdin ends or SIGTERM comes."""

    def run(self) -> None:
        raise NotImplementedError


class _Threads(_Driver):
    """A thread for each user; the main thread hands on the requests."""

    def __init__(
        self,
        channel: Channel,
        make: Callable[[], Any],
        client: Any,
        sharing: Mapping[str, Any],
    ) -> None:
        self.channel = channel
        self.house = users.House(make, client, sharing, threading.Lock())
        self.inboxes: dict[int, Inbox] = {}

    def run(self) -> None:
        with contextlib.suppress(Stop):
            for line in self.channel.lines():
                request = read_request(self.channel, line)
                if request is not None:
                    self._inbox(_user(request)).put(request)
        if self.house.client is not None:
            _, _, error = timed(self.house.client.close)
            report(error)

    def _inbox(self, user: int) -> Inbox:
        if user not in self.inboxes:
            self.inboxes[user] = queue.SimpleQueue()
            threading.Thread(
                target=self._serve, args=(user,), name=f"user-{user}", daemon=True
            ).start()
        return self.inboxes[user]

    def _serve(self, user: int) -> None:
        door = users.Door(self.house, user)
        session = Session(door, partial(_send, self.channel, user))
        with contextlib.suppress(BrokenPipeError):  # the harness is gone; the main thread ends
            while True:
                carry_out(self.channel, session, self.inboxes[user].get())


class _Tasks(_Driver):
    """A task for each user, all on one loop."""

    def __init__(
        self,
        channel: Channel,
        make: Callable[[], Any],
        client: Any,
        sharing: Mapping[str, Any],
    ) -> None:
        self.channel, self._given = channel, (make, client, sharing)
        self.house: Any = None
        self.inboxes: dict[int, Any] = {}
        self.tasks: list[Any] = []

    def run(self) -> None:
        import asyncio  # slow to import, so only where it is needed

        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        with contextlib.suppress(Stop):
            loop.run_until_complete(self._hand_on())
        if self.house is not None and self.house.client is not None:
            _, _, error = loop.run_until_complete(timed_async(self.house.client.close))
            report(error)

    async def _hand_on(self) -> None:
        import asyncio

        self.house = users.House(*self._given, asyncio.Lock())
        lines = AsyncLines(self.channel, asyncio.get_running_loop())
        while True:
            line = await lines.next()
            if line is None:
                return
            request = read_request(self.channel, line)
            if request is None:
                continue
            user = _user(request)
            if user not in self.inboxes:
                self.inboxes[user] = asyncio.Queue()
                self.tasks.append(asyncio.ensure_future(self._serve(user)))
            self.inboxes[user].put_nowait(request)

    async def _serve(self, user: int) -> None:
        door = users.LoopDoor(self.house, user)
        session = Session(door, partial(_send, self.channel, user))
        while True:
            await carry_out_async(self.channel, session, await self.inboxes[user].get())


class _Parent:
    """User 0 before a fork: its client, used once, so that there is something to inherit."""

    def __init__(self, client: Any, sharing: Mapping[str, Any]) -> None:
        self.client, self.sharing = client, sharing
        self.is_open = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def open(self, nodes: Any, options: Any) -> None:
        users.prepare(self.client, self.sharing)
        self.client.open(nodes, options)
        with contextlib.suppress(Refused, Unknown):  # busy with another worker's is use enough
            self.client.release(self.client.acquire(WARM_KEY, WARM_TTL_MS, 0))
        self.is_open = True

    def close(self) -> None:
        self.is_open = False
        self.client.close()


class _Inherited:
    """The client as a child finds it: it is open already, and closing it is the child's end."""

    def __init__(self, parent: _Parent) -> None:
        self.parent, self.sharing = parent, parent.sharing

    def __getattr__(self, name: str) -> Any:
        return getattr(self.parent.client, name)

    def open(self, nodes: Any, options: Any) -> None:
        """Nothing: that is what a child that inherits does."""

    def close(self) -> None:
        self.parent.client.close()


class _Forked(_Driver):
    """The worker and its children."""

    def __init__(
        self,
        channel: Channel,
        make: Callable[[], Any],
        client: Any,
        sharing: Mapping[str, Any],
    ) -> None:
        self.channel = channel
        self.parent = _Parent(client, sharing)
        self.inbox: Inbox = queue.SimpleQueue()
        self.children: dict[int, int] = {}  # user -> where its requests are written
        self.guard = threading.Lock()
        self.failure: ValueError | None = None

    def run(self) -> None:
        session = Session(self.parent, partial(_send, self.channel, 0))
        threading.Thread(target=self._hand_on, name="hand-on", daemon=True).start()
        with contextlib.suppress(Stop):
            while True:
                request = self.inbox.get()
                if request is None:
                    break
                user = _user(request)
                if not user:
                    carry_out(self.channel, session, request)
                elif request.get("do") == "open" and self.parent.is_open:
                    self._fork(user, request)
                else:
                    self._answer(request)
        if session.is_open:
            _, _, error = timed(self.parent.close)
            report(error)
        if self.failure is not None:
            raise self.failure

    def _hand_on(self) -> None:
        try:
            for line in self.channel.lines():
                request = read_request(self.channel, line)
                if request is not None:
                    self._give(_user(request), request, line)
        except ValueError as error:
            self.failure = error
        self.inbox.put(None)

    def _give(self, user: int, request: dict[str, Any], line: bytes) -> None:
        with self.guard:
            pipe = self.children.get(user)
            if pipe is not None and request.get("do") == "close":
                del self.children[user]
        if pipe is None:
            self.inbox.put(request)
            return
        with contextlib.suppress(BrokenPipeError):  # it was killed: the harness learns by silence
            os.write(pipe, line + b"\n")
        if request.get("do") == "close":
            os.close(pipe)

    def _answer(self, request: dict[str, Any]) -> None:
        """For a user without a child: a close is done, the rest has to wait for a parent."""
        reply: dict[str, Any] = {"id": request["id"], "type": "ok"}
        if request.get("do") != "close":
            error = "user 0 has no client open from which this user could inherit"
            reply = {**reply, "type": "fail", "error": error}
        times, _, _ = timed(lambda: None)
        self.channel.send({**reply, "invoke": times[0], "complete": times[1]})

    def _fork(self, user: int, request: dict[str, Any]) -> None:
        read_fd, write_fd = os.pipe()
        self._bury()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it speaks of our own threads
            pid = os.fork()
        if pid:
            os.close(read_fd)
            with self.guard:
                self.children[user] = write_fd
            os.write(write_fd, json.dumps(request).encode("ascii") + b"\n")
            return
        os.close(write_fd)
        os.close(self.channel.requests_fd)
        for other in self.children.values():
            os.close(other)
        self._live(user, read_fd)

    def _live(self, user: int, requests_fd: int) -> None:
        """A child's whole life."""
        guard(requests_fd)
        channel = Channel(requests_fd, self.channel.replies_fd)
        session = Session(_Inherited(self.parent), partial(_send, channel, user))
        with contextlib.suppress(BrokenPipeError, Stop):
            for line in channel.lines():
                request = read_request(channel, line)
                carry_out(channel, session, request)
                if request is not None and request.get("do") == "close":
                    os._exit(0)
        if session.is_open:
            _, _, error = timed(self.parent.client.close)
            report(error)
        os._exit(0)

    def _bury(self) -> None:
        """Takes note of children that ended."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
