"""The one place where the harness meets the other rooms: their registries of names."""

from __future__ import annotations

from checkers.registry import CHECKERS
from clients.registry import LIBRARIES
from compose.registry import BACKENDS, RUNTIMES
from nemesis.registry import FAULTS

__all__ = [
    "BACKENDS",
    "CHECKERS",
    "FAULTS",
    "LIBRARIES",
    "RUNTIMES",
    "SIM",
    "backend_names",
    "has_peers",
]

SIM = "sim"
"""Name of the simulated backend (and of the runtime that alone can run it)."""


def backend_names() -> list[str]:
    """Real backends and the simulated one."""
    return sorted([*BACKENDS.names(), SIM])


def has_peers(backend: str) -> bool:
    """Do the nodes of this backend talk to each other?"""
    return backend in BACKENDS and bool(BACKENDS.load(backend).has_peers)
