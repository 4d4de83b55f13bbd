"""A server in a container: pause, kill, start, and what it says of itself.

    node.kill(); node.status().state           # "dead"
    node.start(wipe=True); node.facts()["keys"]  # 0

Traps: a paused container's kernel still accepts connections, so only an answer proves that it
lives; and the Engine's port proxy accepts for a container whose server does not listen yet, so
``start`` waits for an answer, not for a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compose.docker_compose import unpause_step
from compose.docker_engine import Container
from compose.docker_netns import Namespace
from compose.families.base import Family
from compose.server_node import ServerNode
from compose.waiting import wait_until
from harness.core import limits
from harness.core.errors import HarnessError
from harness.core.protocols import Status
from harness.core.skew import SkewFile
from harness.core.undo import Step


class DockerNode(ServerNode):
    """``harness.core.protocols.Node`` for a server in a container.

    port: published on 127.0.0.1, straight to the server, past every proxy.  data: folder of its
    volume in the container, "" = it keeps no data.  network: the namespace it lives in.
    remake: makes its container anew, where a start on emptied data needs another command.
    """

    def __init__(
        self,
        name: str,
        family: Family,
        container: Container,
        *,
        port: int,
        data: str,
        network: Namespace,
        clock: SkewFile | None = None,
        remake: Callable[[], Container] | None = None,
    ) -> None:
        super().__init__(name, family, port=port, clock=clock)
        self._remake, self._log_before = remake, b""
        self.container, self.data, self._network = container, data, network
        self.role = str(self.facts()["role"])

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

    def swallow(self) -> None:
        self._network.swallow()

    def swallowed(self) -> int:
        return self._network.swallowed()

    def deliver(self) -> None:
        self._network.deliver()

    def undo_swallow(self) -> Sequence[Step]:
        return self._network.undo()

    @property
    def replicated(self) -> bool:
        return self.family.replicated

    def leave_own_mark(self, mark: str) -> None:
        self.container.leave_file(self.data, mark)

    def has_own_mark(self, mark: str) -> bool:
        return self.container.has_file(f"{self.data}/{mark}")

    def start(self, *, wipe: bool = False) -> None:
        """Starts it again; HarnessError if it was to be wiped and is not dead, or never answers."""
        if wipe:
            if self.status().state != "dead":
                raise HarnessError(f"node {self.name}: must be dead before its data is wiped")
            if not self.data:
                raise HarnessError(f"node {self.name}: keeps no data that could be wiped")
            self.container.empty(self.data, self._network.image)
            if self._remake is not None:
                self._log_before += self.container.logs()
                self.container = self._remake()
        self.container.start()
        self._wait_ready()

    def logs(self) -> bytes:
        """Of all containers that it had."""
        return self._log_before + self.container.logs()

    def _wait_ready(self) -> None:
        answered = False

        def settled() -> bool:
            # Once is enough: on a busy machine the next echo may be late again.
            nonlocal answered
            answered = self._answers()
            return answered or not self.container.state().running

        if wait_until(settled, timeout_s=limits.NODE_READY_TIMEOUT_S) and answered:
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
        if self.probe(limits.PROBE_TIMEOUT_MS).outcome != "answered":
            return False
        try:
            self.family.check_ready(self.host, self.port)
        except HarnessError:
            return False
        return True
