"""A server in a container: pause, kill, start, and what it says of itself.

    node.kill(); node.status().state           # "dead"
    node.start(wipe=True); node.facts()["keys"]  # 0

Traps: a paused container's kernel still accepts connections, so only an answer proves that it
lives; and the Engine's port proxy accepts for a container whose server does not listen yet, so
``start`` waits for an answer, not for a connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compose import redis_probe
from compose.docker_compose import unpause_step
from compose.docker_engine import Container
from compose.waiting import wait_until
from harness.core import limits
from harness.core.errors import HarnessError
from harness.core.protocols import ClockReading, Link, Probe, Status, session_name
from harness.core.skew import SkewFile
from harness.core.undo import Step, resp_step

DATA_DIR = "/data"


class DockerNode:
    """``harness.core.protocols.Node`` for a Redis or Valkey server in a container.

    port: published on 127.0.0.1, straight to the server, past every proxy.
    """

    def __init__(
        self, name: str, container: Container, *, port: int, clock: SkewFile | None = None
    ) -> None:
        self.name = name
        self._clock = clock
        self.port = port
        self.container = container
        self.role = str(self.facts()["role"])

    def __repr__(self) -> str:
        return f"DockerNode({self.name}, {self.container.id[:12]}, port {self.port})"

    def status(self) -> Status:
        state = self.container.state()
        # A frozen container counts as running for the Engine, so look for paused first.
        identity = f"{self.container.id[:12]}@{state.started_at}"
        if state.paused:
            return Status("paused", identity)
        return Status("running" if state.running else "dead", identity)

    def pause(self) -> None:
        self.container.pause()

    def resume(self) -> None:
        self.container.unpause()

    def kill(self) -> None:
        self.container.kill()

    def undo_pause(self) -> Sequence[Step]:
        return [unpause_step(self.container.id)]

    def start(self, *, wipe: bool = False) -> None:
        """Starts it again; HarnessError if it was to be wiped and is not dead, or never answers."""
        if wipe:
            if self.status().state != "dead":
                raise HarnessError(f"node {self.name}: must be dead before its data is wiped")
            self.container.empty(DATA_DIR)
        self.container.start()
        self._wait_ready()

    def probe(self, timeout_ms: int) -> Probe:
        return redis_probe.probe("127.0.0.1", self.port, timeout_ms)

    def facts(self) -> Mapping[str, Any]:
        return redis_probe.facts("127.0.0.1", self.port)

    def leave_mark(self, mark: str) -> None:
        redis_probe.leave_mark("127.0.0.1", self.port, mark)

    def has_mark(self, mark: str) -> bool:
        return redis_probe.has_mark("127.0.0.1", self.port, mark)

    def command(self, *words: str) -> str:
        return redis_probe.ask("127.0.0.1", self.port, words)[0]

    def sessions(self, link: Link) -> Sequence[str]:
        return redis_probe.sessions("127.0.0.1", self.port, session_name(link.port))

    def end_session(self, link: Link, identity: str) -> None:
        redis_probe.end_session("127.0.0.1", self.port, identity)

    def undo_command(self, *words: str) -> Sequence[Step]:
        run_id = str(self.facts()["run_id"])
        return [resp_step("127.0.0.1", self.port, words, run_id=run_id)]

    def set_clock(self, *, offset_ns: int, rate_ppm: int) -> None:
        self._skew().set(offset_ns=offset_ns, rate_ppm=rate_ppm)

    def clock_reading(self) -> ClockReading:
        told = redis_probe.clock("127.0.0.1", self.port)
        return ClockReading(told.offset_ns, told.error_ns, self._skew().reads())

    def undo_clock(self) -> Sequence[Step]:
        return self._skew().undo()

    def _skew(self) -> SkewFile:
        if self._clock is None:
            raise HarnessError(
                f"node {self.name} was started without the clock shim: its clock is the machine's"
            )
        return self._clock

    def _wait_ready(self) -> None:
        def settled() -> bool:
            return self._answers() or not self.container.state().running

        if wait_until(settled, timeout_s=limits.NODE_READY_TIMEOUT_S) and self._answers():
            self.role = str(self.facts()["role"])
            return
        state = self.container.state()
        log = self.container.logs()[-1000:].decode(errors="replace")
        raise HarnessError(
            f"node {self.name}: did not answer within {limits.NODE_READY_TIMEOUT_S} s of its start"
            f" (running: {state.running}, exit code {state.exit_code},"
            f" out of memory: {state.oom_killed}); end of its log:\n{log}"
        )

    def _answers(self) -> bool:
        # While a server loads its file it answers an ECHO, and INFO in full, but refuses DBSIZE.
        if self.probe(limits.PROBE_TIMEOUT_MS).outcome != "answered":
            return False
        try:
            redis_probe.ask("127.0.0.1", self.port, ("DBSIZE",))
        except HarnessError:
            return False
        return True
