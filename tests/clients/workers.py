"""A worker process under test: started as the harness starts it, judged by the harness' types."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from clients.libraries import WORKER
from harness.core.messages import Reply, Request

LIMIT_S = 30.0  # for anything that should take milliseconds; two busy cores are slow

decode = msgspec.json.Decoder(Reply).decode


class StrictReply(Reply, forbid_unknown_fields=True):
    """The same record, which refuses a field that the harness would overlook."""


strict = msgspec.json.Decoder(StrictReply).decode


class WorkerUnderTest:
    """Requests in, replies out, every wait bounded."""

    def __init__(self, argv: Sequence[str], log: Path) -> None:
        self._log = log
        self._ids = itertools.count(1)
        self._received = b""
        self.hello: dict[str, Any] = {}
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
            )

    def send_line(self, line: bytes) -> None:
        assert self.process.stdin is not None
        os.write(self.process.stdin.fileno(), line)

    def send(self, do: str, **fields: Any) -> int:
        request = Request(id=next(self._ids), do=do, **fields)
        self.send_line(msgspec.json.encode(request) + b"\n")
        return request.id

    def receive(self) -> Reply:
        """The next message; fails if none comes or if it is not as the harness expects."""
        assert self.process.stdout is not None
        fd, deadline = self.process.stdout.fileno(), time.monotonic() + LIMIT_S
        while b"\n" not in self._received:
            ready, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(fd, 1 << 16) if ready else b""
            assert data, f"no reply; the worker's log says:\n{self.log()}"
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        return strict(line)

    def ask(self, do: str, **fields: Any) -> Reply:
        """Sends a request and returns its reply, whose stamps must lie within the round trip."""
        before = time.monotonic_ns()
        number = self.send(do, **fields)
        reply = self.receive()
        assert reply.id == number, reply
        assert before <= reply.invoke <= reply.complete <= time.monotonic_ns()
        return reply

    def open(self, **options: Any) -> Reply:
        return self.ask("open", options={"nodes": [], "options": {}, "resource": None, **options})

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def end(self) -> int:
        """Closes stdin and returns the exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(LIMIT_S)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(LIMIT_S)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@contextlib.contextmanager
def worker(
    argv: Sequence[str], directory: Path, *, hello: bool = True
) -> Iterator[WorkerUnderTest]:
    """Starts a worker; by default its hello has been received (``hello_reply``)."""
    count = len(list(directory.glob("worker-*.log")))
    under_test = WorkerUnderTest(argv, directory / f"worker-{count}.log")
    try:
        if hello:
            reply = under_test.receive()
            assert reply.event == "hello", reply
            under_test.hello = reply.value
        yield under_test
    finally:
        under_test.kill()


def adapter_argv(directory: Path, body: str, *extra: str) -> list[str]:
    """argv of a worker with an adapter made of ``body`` (methods of the class, dedented)."""
    path = directory / "adapter_under_test.py"
    path.write_text(PREAMBLE + textwrap.indent(textwrap.dedent(body), "    ") + POSTAMBLE)
    return [sys.executable, "-u", str(WORKER), "--adapter", str(path), *extra]


PREAMBLE = """\
import asyncio, json, os, signal, sys, threading, time
from clients.worker.adapter import Definite, Grant, Lease, Refused, Unknown

class Busy(Exception): pass
class SomewhatBusy(Busy): pass
class Broken(Exception): pass

class Client:
    library, distributions, lease = "in-test", (), Lease("ttl")
    ERRORS = {Busy: Definite("busy"), ZeroDivisionError: Definite()}

    def __init__(self, **args): self.args = args
    def open(self, nodes, options): self.options = options
    def acquire(self, key, ttl_ms, timeout_ms): return Grant("owner of " + key, 7)
    def release(self, grant): pass
    def close(self): pass

"""
POSTAMBLE = "\n\nADAPTER = Client\n"
