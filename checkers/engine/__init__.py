"""The general linearizability checker: ``check(intervals, model)`` for any model."""

from __future__ import annotations

from checkers.engine.check import EngineResult, Witness, check, partition

__all__ = ["EngineResult", "Witness", "check", "partition"]
