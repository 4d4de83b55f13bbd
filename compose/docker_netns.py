"""Packets of a container swallowed without a word: iptables DROP in its own network namespace.

    network = Namespace(container, image); network.swallow(); network.swallowed()    # 12

A helper container with NET_ADMIN does it, so the server itself needs no rights and no tools.
Traps: the Engine's forwarder still accepts a connection to a published port, and it then stays
silent; rules die with the namespace, which is why a node that talks to others has one of its own
beside it (docker_links).
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Sequence

from compose import docker_undo
from harness.core.errors import HarnessError
from harness.core.undo import Step, argv_step


class Namespace:
    """The network namespace that ``container`` (full id) lives in; ``image`` has iptables."""

    def __init__(self, container: str, image: str) -> None:
        self._container, self.image = container, image

    def swallow(self) -> None:
        if self._dropping():
            raise HarnessError("its packets are swallowed already; keep faults on it apart in time")
        with _as_harness_error():
            docker_undo.in_namespace(self._container, self.image, docker_undo.packet_rules("-I"))

    def swallowed(self) -> int:
        return sum(self._dropping())

    def deliver(self) -> None:
        with _as_harness_error():
            docker_undo.hear(self._container, self.image)

    def undo(self) -> Sequence[Step]:
        return [argv_step([sys.executable, docker_undo.__file__, "hear", self._container,
                           self.image])]  # fmt: skip

    def _dropping(self) -> list[int]:
        """Packets that each of our rules has dropped; empty if there are none."""
        with _as_harness_error():
            listed = docker_undo.in_namespace(
                self._container, self.image, ["sh", "-ec", "iptables -w -nvxL"]
            )
        return [int(count) for count in re.findall(r"^\s*(\d+)\s+\d+\s+DROP\b", listed, re.M)]


@contextlib.contextmanager
def _as_harness_error() -> Iterator[None]:
    try:
        yield
    except docker_undo.UndoError as error:
        raise HarnessError(str(error)) from error
