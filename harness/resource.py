"""The protected resource from the harness' side: where it is and what it recorded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

import msgspec

from clients.resource.export import records
from clients.resource.process import ResourceProcess
from clients.sim.resource import SimResource
from harness.core.protocols import ResourceRecord
from harness.core.undo import MARK_VARIABLE

FOLDER = "resource"


class Resource(Protocol):
    """A protected resource, live or simulated."""

    def place(self) -> dict[str, Any] | None:
        """{"host", "port"} for the workers, or None if there is none to connect to."""

    def export(self, start_ns: int) -> list[ResourceRecord]:
        """All writes in order of arrival, times since ``start_ns``."""

    def close(self) -> None: ...


class NoResource:
    """A run without one: it judges the lock alone."""

    def place(self) -> None:
        return None

    def export(self, start_ns: int) -> list[ResourceRecord]:
        return []

    def close(self) -> None:
        pass


class LiveResource:
    """A server process below the run's directory; its record outlives it."""

    def __init__(self, run_dir: Path, mode: str, mark: str) -> None:
        env = {**os.environ, MARK_VARIABLE: mark}
        self._process = ResourceProcess.start(run_dir / FOLDER, mode, env=env)

    def place(self) -> dict[str, Any]:
        return self._process.place()

    def export(self, start_ns: int) -> list[ResourceRecord]:
        return list(records(self._process.directory, start_ns=start_ns))

    def close(self) -> None:
        self._process.stop()


class SimulatedResource:
    """The one of the simulation, which its workers reach by themselves."""

    def __init__(self, resource: SimResource) -> None:
        self._resource = resource

    def place(self) -> None:
        return None

    def export(self, start_ns: int) -> list[ResourceRecord]:
        return [
            msgspec.structs.replace(record, time=record.time - start_ns)
            for record in self._resource.records
        ]

    def close(self) -> None:
        pass


def recorded(run_dir: Path, start_ns: int) -> list[ResourceRecord]:
    """The record of a run whose harness died before it could export it."""
    folder = run_dir / FOLDER
    return list(records(folder, start_ns=start_ns)) if folder.is_dir() else []
