"""Checkers: a library of pure functions of a history, usable without the harness.

    from checkers import check_model, read_history

    result = check_model(read_history("history.jsonl"), "lease", ttl_ms=10_000)
    print(result.valid, result.says)

``check_model`` picks the fast monitor where it applies and the general engine where not.  Names
are loaded when they are used, so that ``import checkers.interchange`` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from checkers.api import MODEL_NAMES, check_model
    from checkers.interchange import read_history, write_history
    from checkers.models import MODELS, Model
    from harness.core.history import Header, History, Interval, Op
    from harness.core.result import Anomaly, Result, Side, Valid

_HOMES = {
    "checkers.api": ("MODEL_NAMES", "check_model"),
    "checkers.interchange": ("read_history", "write_history"),
    "checkers.models": ("MODELS", "Model"),
    "harness.core.history": ("Header", "History", "Interval", "Op"),
    "harness.core.result": ("Anomaly", "Result", "Side", "Valid"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
__all__ = [  # a test holds it equal to _HOME
    "MODELS", "MODEL_NAMES", "Anomaly", "Header", "History", "Interval", "Model", "Op", "Result",
    "Side", "Valid", "check_model", "read_history", "write_history",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'checkers' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
