"""The line to one worker under examination: requests out, replies in, every wait bounded.

    worker = Talk("one", argv, log, env, said=[])
    worker.start(); worker.ask("acquire", key="k", hold="1", ttl_ms=1000, timeout_ms=0).type

Stricter than the pool of a run (harness/workers.py): an unknown field, a stamp outside its round
trip or a line that is no message is a ``Wrong``, with the line.  What went to and fro is noted in
``said``, for the report.

Trap: a reply is read when somebody waits for it, so the upper bound of its stamps is that moment;
only ever too late, so it accuses nobody wrongly.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.core import limits
from harness.core.clock import NS_PER_S
from harness.core.errors import UserError
from harness.core.messages import Reply, Request

ANSWER_S = 20.0  # for what takes milliseconds; two busy cores are slow
ERROR_CHARS_MAX = 500
TYPES = ("ok", "fail", "info")
EVENTS = ("hello", "lost", "log")


class Wrong(Exception):
    """The worker broke a rule; the text says which, and what it did."""


class Silent(Wrong):
    """Nothing came in time."""


class _Strict(Reply, forbid_unknown_fields=True):
    """The same record, which refuses a field that the harness would overlook."""


_decode = msgspec.json.Decoder(_Strict).decode
_encode = msgspec.json.Encoder().encode


class Talk:
    """One worker process and what it said."""

    def __init__(
        self, name: str, argv: Sequence[str], log: Path, env: dict[str, str], said: list[str]
    ) -> None:
        """said: where lines to and fro are noted, shared by the workers of a bench."""
        self.name, self.log, self.said = name, log, said
        self._argv, self._env = list(argv), env
        self._number = 0
        self._received = b""
        self._events: list[Reply] = []
        self._sent_ns: dict[int, int] = {}
        self.hello: dict[str, Any] = {}
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> subprocess.Popen[bytes]:
        assert self.process is not None, f"worker {self.name} was not started"
        return self.process

    def start(self) -> None:
        """Starts the program and takes its hello; UserError if there is no such program."""
        self._received, self._events, self._sent_ns = b"", [], {}
        self.said.append(f"{self.name} $ {' '.join(self._argv)}")
        with self.log.open("ab") as log:
            try:
                self.process = subprocess.Popen(
                    self._argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env={**os.environ, **self._env},
                    start_new_session=True,
                )
            except OSError as error:
                raise UserError(
                    f"CMD is {self._argv[0]!r}, which cannot be started: {error.strerror}"
                ) from error
        first = self._next(limits.WORKER_START_TIMEOUT_S)
        if first.event != "hello":
            raise Wrong("the first line is not the event hello")
        self.hello = first.value if isinstance(first.value, dict) else {}

    def ask(self, do: str, *, within_s: float = ANSWER_S, **fields: Any) -> Reply:
        """Sends a request and returns its reply."""
        return self.answer(self.send(do, **fields), within_s)

    def send(self, do: str, **fields: Any) -> int:
        """Sends a request and returns its id."""
        self._number += 1
        line = _encode(Request(id=self._number, do=do, **fields))
        self._sent_ns[self._number] = time.monotonic_ns()
        self.send_line(line)
        return self._number

    def send_line(self, line: bytes) -> None:
        """Sends any bytes as a line."""
        pipe = self.running.stdin
        assert pipe is not None
        self.said.append(f"{self.name} -> {line.decode(errors='replace')}")
        with contextlib.suppress(BrokenPipeError):
            os.write(pipe.fileno(), line + b"\n")

    def answer(self, number: int, within_s: float = ANSWER_S) -> Reply:
        """The reply to request ``number``; events that come before it are kept."""
        deadline = time.monotonic() + within_s
        while True:
            reply = self._next(deadline - time.monotonic())
            if reply.event:
                self._events.append(reply)
            elif reply.id == number:
                self._check(reply)
                return reply
            else:
                raise Wrong(f"a reply to request {reply.id} came where {number} was to be answered")

    def event(self, kind: str, within_s: float = ANSWER_S) -> Reply:
        """The next event of a kind, whether it came already or comes in time."""
        deadline = time.monotonic() + within_s
        while True:
            for event in self._events:
                if event.event == kind:
                    self._events.remove(event)
                    return event
            reply = self._next(deadline - time.monotonic())
            if not reply.event:
                raise Wrong(f"a reply came where the event {kind} was expected")
            self._events.append(reply)

    def end(self) -> int:
        """Closes stdin; exit status, Wrong if it does not end in time."""
        pipe = self.running.stdin
        assert pipe is not None
        self.said.append(f"{self.name} -> (end of input)")
        pipe.close()
        return self.ended()

    def ended(self) -> int:
        """Exit status; Wrong if it does not end within the time that the harness gives it."""
        try:
            code = self.running.wait(limits.WORKER_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise Wrong(f"it still runs after {limits.WORKER_STOP_TIMEOUT_S:.0f} s") from None
        self.said.append(f"{self.name} (ended with {_how(code)})")
        return code

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the worker's process."""
        self.said.append(f"{self.name} ! {number.name}")
        with contextlib.suppress(ProcessLookupError):
            self.running.send_signal(number)

    def kill(self) -> None:
        """Ends it at once, whatever state it is in."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _next(self, within_s: float) -> Reply:
        pipe = self.running.stdout
        assert pipe is not None
        deadline = time.monotonic() + within_s
        while b"\n" not in self._received:
            ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise Silent(f"worker {self.name} said nothing for {within_s:.0f} s")
            data = os.read(pipe.fileno(), 1 << 16)
            if not data:
                how = _how(self.running.wait())
                raise Silent(f"worker {self.name} ended with {how}{self._last_words()}")
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        self.said.append(f"{self.name} <- {line.decode(errors='replace')}")
        try:
            reply = _decode(line)
        except msgspec.DecodeError as error:
            raise Wrong(f"a line of stdout that is no message ({error})") from error
        if reply.event and reply.event not in EVENTS:
            raise Wrong(f"event is {reply.event!r}; it must be one of {', '.join(EVENTS)}")
        return reply

    def _check(self, reply: Reply) -> None:
        """The rules that every reply must keep."""
        if reply.type not in TYPES:
            raise Wrong(f"type is {reply.type!r}; it must be one of {', '.join(TYPES)}")
        sent, now = self._sent_ns.pop(reply.id), time.monotonic_ns()
        if not sent <= reply.invoke <= reply.complete <= now:
            raise Wrong(
                f"the stamps are not ns of CLOCK_MONOTONIC within the round trip: sent {sent}, "
                f"invoke {reply.invoke}, complete {reply.complete}, received {now} "
                f"({(now - sent) / NS_PER_S:.3f} s after it was sent)"
            )
        if reply.type == "ok" and reply.error:
            raise Wrong(f"the type is ok, but error says {reply.error!r}")
        if reply.type != "ok" and not reply.error:
            raise Wrong(f"the type is {reply.type}, but error says nothing")
        if reply.error and (len(reply.error) > ERROR_CHARS_MAX or "\n" in reply.error):
            raise Wrong(f"error is {len(reply.error)} characters; one line of at most 500 is right")

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()[-3:]
        return f"; its stderr: {' | '.join(lines)}" if lines else ""


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
