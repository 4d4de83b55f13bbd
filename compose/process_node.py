"""A Redis or Valkey server as a local process: ``protocols.Node`` and ``protocols.Markable``.

    node = ProcessNode("redis", binary, port=23117, data=..., log=..., mark=..., args=[...])
    node.first_start(); node.kill(); node.start()       # on its data, at the same port

Traps: readiness is not "the port answers" but "the server with *our* pid answers", so a stranger
at that port is never taken for ours.  ``--set-proc-title no`` keeps the environment readable for
the undo step (process_server).  Servers listen on 127.0.0.1 only.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compose import redis_probe
from compose.process_server import LocalServer
from compose.servers import Binary
from harness.core import limits
from harness.core.errors import HarnessError
from harness.core.protocols import ClockReading, Link, Probe, Status, session_name
from harness.core.skew import SkewFile
from harness.core.undo import Step, resp_step


class ProcessNode:
    """One server; data directory, port and log stay the same over restarts."""

    def __init__(
        self,
        name: str,
        binary: Binary,
        *,
        port: int,
        data: Path,
        log: Path,
        mark: str,
        args: Sequence[str],
        clock_shim: Path | None = None,
    ) -> None:
        self.name, self.role = name, "primary"
        self.host, self.port = "127.0.0.1", port
        self.data, self.log = data, log
        argv = [str(binary.path), "--port", str(port), "--bind", self.host]
        argv += ["--dir", str(data), "--daemonize", "no", "--set-proc-title", "no", *args]
        env: dict[str, str] = {}
        self._clock = SkewFile(data.parent / f"{name}.clock") if clock_shim else None
        if self._clock is not None and clock_shim is not None:
            self._clock.create()
            env |= self._clock.environment(clock_shim)
        self._server = LocalServer(f"node {name}", argv, mark=mark, log=log, cwd=data, env=env)

    def __repr__(self) -> str:
        return f"ProcessNode({self.name}, {self.host}:{self.port})"

    def first_start(self) -> None:
        """Starts it; EndedError if it ends at once, HarnessError if it never answers."""
        self._server.spawn()
        self._server.await_ready(self._is_ready, timeout_s=limits.NODE_READY_TIMEOUT_S)
        self.role = str(self.facts()["role"])

    def _is_ready(self) -> bool:
        # PING is refused while the data loads; INFO is not, and tells who answers.
        redis_probe.ask(self.host, self.port, ("PING",), timeout_ms=limits.PROBE_TIMEOUT_MS)
        pid = redis_probe.facts(self.host, self.port, limits.PROBE_TIMEOUT_MS)["pid"]
        if pid != self._server.pid:
            raise HarnessError(f"port {self.port} is answered by another server, pid {pid}")
        return True

    def start(self, *, wipe: bool = False) -> None:
        """Starts it again; HarnessError if it is alive, ends at once or does not answer."""
        state = self.status().state
        if state != "dead":
            raise HarnessError(f"node {self.name} is {state}; only a dead one can be started")
        if wipe:
            shutil.rmtree(self.data)
        self.first_start()

    def status(self) -> Status:
        return self._server.status()

    def pause(self) -> None:
        self._server.signal(signal.SIGSTOP, "paused")

    def resume(self) -> None:
        """Goes on; nothing happens if it is dead (a kill ends a pause, too)."""
        if self.status().state != "dead":
            self._server.signal(signal.SIGCONT, "resumed")

    def kill(self) -> None:
        self._server.kill()

    def undo_pause(self) -> Sequence[Step]:
        return self._server.undo_pause()

    def probe(self, timeout_ms: int) -> Probe:
        return redis_probe.probe(self.host, self.port, timeout_ms)

    def facts(self) -> Mapping[str, Any]:
        return redis_probe.facts(self.host, self.port)

    def leave_mark(self, mark: str) -> None:
        redis_probe.leave_mark(self.host, self.port, mark)

    def has_mark(self, mark: str) -> bool:
        return redis_probe.has_mark(self.host, self.port, mark)

    def command(self, *words: str) -> str:
        return redis_probe.ask(self.host, self.port, words)[0]

    def sessions(self, link: Link) -> Sequence[str]:
        return redis_probe.sessions(self.host, self.port, session_name(link.port))

    def end_session(self, link: Link, identity: str) -> None:
        redis_probe.end_session(self.host, self.port, identity)

    def undo_command(self, *words: str) -> Sequence[Step]:
        run_id = str(self.facts()["run_id"])
        return [resp_step(self.host, self.port, words, run_id=run_id)]

    def set_clock(self, *, offset_ns: int, rate_ppm: int) -> None:
        self._skew().set(offset_ns=offset_ns, rate_ppm=rate_ppm)

    def clock_reading(self) -> ClockReading:
        told = redis_probe.clock(self.host, self.port)
        return ClockReading(told.offset_ns, told.error_ns, self._skew().reads())

    def undo_clock(self) -> Sequence[Step]:
        return self._skew().undo()

    def _skew(self) -> SkewFile:
        if self._clock is None:
            raise HarnessError(
                f"node {self.name} was started without the clock shim: its clock is the machine's"
            )
        return self._clock
