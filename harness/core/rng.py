"""Named streams of randomness: one seed, and a new stream never shifts another.

``stream(7, "fault/0")`` gives the same numbers whatever other streams exist, so adding a fault to
a scenario leaves the choices of all others as they were.
"""

from __future__ import annotations

import hashlib
import random


def stream(seed: int, name: str) -> random.Random:
    """The generator for ``name`` under ``seed`` (SHA-256 of both; stable across Pythons)."""
    digest = hashlib.sha256(f"{seed}\0{name}".encode()).digest()
    return random.Random(int.from_bytes(digest[:16], "big"))
