"""A server as a local process: ``protocols.Node`` and its optional powers.

    node = ProcessNode("redis", family, program, port=23117, data=..., log=..., mark=...)
    node.spawn(); node.await_ready(); node.kill(); node.start()     # on its data, at the same port

Traps: readiness is not "the port answers" but "*our* process listens at it", so a stranger at that
port is never taken for ours.  Servers listen on 127.0.0.1 only.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

from compose.backends.spec import LocalProgram
from compose.families.base import Family
from compose.process_ports import listens
from compose.process_server import LocalServer
from compose.server_node import ServerNode
from harness.core import limits
from harness.core.errors import HarnessError
from harness.core.protocols import Status
from harness.core.skew import SkewFile
from harness.core.undo import Step


class ProcessNode(ServerNode):
    """One server; data directory, port and log stay the same over restarts."""

    def __init__(
        self,
        name: str,
        family: Family,
        program: LocalProgram,
        *,
        port: int,
        data: Path,
        log: Path,
        mark: str,
        clock_shim: Path | None = None,
    ) -> None:
        clock = SkewFile(data.parent / f"{name}.clock") if clock_shim else None
        super().__init__(name, family, port=port, clock=clock)
        self.data, self.log, self._program = data, log, program
        env = dict(program.env)
        if clock is not None and clock_shim is not None:
            clock.create()
            env |= clock.environment(clock_shim)
        self._server = LocalServer(
            f"node {name}",
            program.argv,
            mark=mark,
            log=log,
            cwd=data,
            env=env,
        )

    def spawn(self) -> None:
        """Prepares its data folder if that is new, and starts the process."""
        fresh = not self.data.exists()
        self.data.mkdir(parents=True, exist_ok=True)
        for name, text in self._program.files.items():
            (self.data / name).write_text(text)
        if fresh:
            for argv in self._program.prepare:
                self._server.prepare(argv)
        self._server.spawn()

    def await_ready(self) -> None:
        """EndedError if it ends at once, HarnessError if it never answers or is another version."""
        self._server.await_ready(self._is_ready, timeout_s=limits.NODE_READY_TIMEOUT_S)
        facts = self.facts()
        self.role = str(facts["role"])
        wanted = self._program.version
        if wanted and facts["version"] != wanted:
            raise HarnessError(
                f"node {self.name}: {self._program.argv[0]} calls itself {wanted}, but the server "
                f"that answers at {self.host}:{self.port} is {facts['version']}"
            )

    def _is_ready(self) -> bool:
        self.family.check_ready(self.host, self.port)
        if not listens(self._server.pid, self.port):
            raise HarnessError(f"port {self.port} is answered by another server")
        return True

    def start(self, *, wipe: bool = False) -> None:
        """Starts it again; HarnessError if it is alive, ends at once or does not answer."""
        state = self.status().state
        if state != "dead":
            raise HarnessError(f"node {self.name} is {state}; only a dead one can be started")
        if wipe:
            shutil.rmtree(self.data)
            self._server.argv = list(self._program.emptied or self._program.argv)
        self.spawn()
        self.await_ready()

    @property
    def replicated(self) -> bool:
        return self.family.replicated

    def leave_own_mark(self, mark: str) -> None:
        (self.data / mark).touch()

    def has_own_mark(self, mark: str) -> bool:
        return (self.data / mark).exists()

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
