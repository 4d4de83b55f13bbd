"""What we do when the Engine does not do what it was told the first time."""

from __future__ import annotations

from typing import Any

import docker.errors
import pytest

from compose.docker_engine import FREEZE_TRIES_MAX, Container
from harness.core.errors import HarnessError


class Engine:
    """Stands for the SDK's container: an Engine that refuses the first ``failures`` pauses."""

    id = "4822fa410901"

    def __init__(self, failures: int, why: str) -> None:
        self.failures, self.why, self.asked = failures, why, 0
        self.attrs: dict[str, Any] = {
            "State": {"Running": True, "Paused": False, "StartedAt": "", "Pid": 1, "ExitCode": 0}
            | {"OOMKilled": False}
        }

    def reload(self) -> None: ...

    def pause(self) -> None:
        self.asked += 1
        if self.asked <= self.failures:
            raise docker.errors.APIError(self.why)
        self.attrs["State"]["Paused"] = True


BUSY = "OCI runtime pause failed: unable to freeze: unknown"


def test_a_freeze_that_failed_on_a_busy_machine_is_tried_again() -> None:
    engine = Engine(2, BUSY)
    container = Container(engine, "zk3")
    container.pause()
    assert container.state().paused
    assert engine.asked == 3
    container.pause()
    assert engine.asked == 3, "it is paused already"


def test_not_for_ever_and_not_for_other_reasons() -> None:
    engine = Engine(99, BUSY)
    with pytest.raises(HarnessError, match=r"pause zk3: .*unable to freeze"):
        Container(engine, "zk3").pause()
    assert engine.asked == FREEZE_TRIES_MAX
    other = Engine(99, "no such container")
    with pytest.raises(HarnessError, match="no such container"):
        Container(other, "zk3").pause()
    assert other.asked == 1
