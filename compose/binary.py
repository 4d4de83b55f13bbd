"""A server program of this machine that said what it is."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Binary(msgspec.Struct, frozen=True):
    """A binary that said what it is.  origin: PATH, a wheel, a variable or the cache."""

    name: str
    path: Path
    version: str
    origin: str
