"""Faults that reconfigure a running server: read the old values, set others, put them back.

    class ReadOnly(ConfigFault):
        settings = ("min-replicas-to-write",)
        def _apply(self, node): speaker(node).command("CONFIG", "SET", ...)

The old values go to the ledger as commands that any process can send (``undo_command``), which
name the start of the server: one that was started again has its own configuration and is left
alone.

Trap: ``undo`` is asked on another object than ``inject``, possibly long before, so each reads the
old values for itself.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from harness.core import limits
from harness.core.errors import AnsweredError, HarnessError
from harness.core.protocols import Commandable, Evidence, Node, World
from harness.core.undo import Step
from nemesis.base import NodeFault, each, node_answers, prove

PROBE_KEY = "lockhavoc:probe:write"
_PROBE_LIFE_S = "60"  # then the server forgets it by itself


class ConfigFault(NodeFault):
    """Base: ``settings`` are the names that it changes, in the order in which they go back."""

    families: ClassVar[tuple[str, ...]] = ("redis",)
    settings: ClassVar[tuple[str, ...]]

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._was: dict[str, Mapping[str, str]] = {}

    def undo(self, world: World, targets: Sequence[str]) -> Sequence[Step]:
        return [
            step
            for node in self._nodes(world, targets)
            for name, value in self._settings_of(node).items()
            for step in speaker(node).undo_command("CONFIG", "SET", name, value)
        ]

    def inject(self, world: World, targets: Sequence[str]) -> None:
        for node in self._nodes(world, targets):
            was = self._settings_of(node)
            self._remember(node)
            self._was[node.name] = was
            self._apply(node)

    @abstractmethod
    def _apply(self, node: Node) -> None:
        """Changes the configuration of one server."""

    def _settings_of(self, node: Node) -> dict[str, str]:
        found = {}
        for name in self.settings:
            reply = speaker(node).command("CONFIG", "GET", name).split("\n")
            if len(reply) != 2:
                raise HarnessError(f"{self.kind}: {node.name} knows no setting {name!r}")
            found[name] = reply[1]
        return found

    def heal(self, world: World, targets: Sequence[str]) -> None:
        each(self._mine(self._nodes(world, targets)), self._restore)

    def _restore(self, node: Node) -> None:
        for name, value in self._was[node.name].items():
            speaker(node).command("CONFIG", "SET", name, value)

    def evidence(self, world: World, targets: Sequence[str]) -> Evidence:
        return self._prove(world, self._nodes(world, targets), self._bit)

    @abstractmethod
    def _bit(self, node: Node) -> Evidence:
        """One look at one server."""

    def healed(self, world: World, targets: Sequence[str]) -> Evidence:
        return prove(world, self._nodes(world, targets), takes_writes, limits.HEAL_TIMEOUT_MS)


def speaker(node: Node) -> Commandable:
    """The node as one that takes commands; HarnessError if it does not."""
    if not isinstance(node, Commandable):
        raise HarnessError(f"{node.name} takes no commands, so it cannot be told anything")
    return cast(Commandable, node)


def try_write(node: Node) -> str:
    """ "" if a write is accepted now, else the error that the server answers."""
    try:
        speaker(node).command("SET", PROBE_KEY, "1", "EX", _PROBE_LIFE_S)
    except AnsweredError as error:
        return str(error)
    return ""


def takes_writes(node: Node) -> Evidence:
    """Answers, and accepts a write."""
    seen, refusal = node_answers(node), try_write(node)
    says = f"write refused ({refusal})" if refusal else "write accepted"
    return Evidence(
        seen.bit and not refusal, f"{seen.says}, {says}", {**seen.facts, "refusal": refusal}
    )
