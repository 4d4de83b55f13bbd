"""What is around a lock in Python: retries, ways in, sections, keys, clocks, settings.

    for fact in around(module, grants): ...

Each file of this room looks at one question and gives facts; rules judge them.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkers.audit.model import Fact
from checkers.audit.python.clocks import clock_facts
from checkers.audit.python.constants import setting_facts
from checkers.audit.python.entering import entering_facts
from checkers.audit.python.keys import key_facts
from checkers.audit.python.names import Module
from checkers.audit.python.recovery import recovery_facts
from checkers.audit.python.retries import retry_facts
from checkers.audit.python.scene import Scene
from checkers.audit.python.sections import section_facts


def around(module: Module, known: Sequence[Fact]) -> list[Fact]:
    """All facts of one file beyond the locks themselves; ``known`` are those of the locks."""
    scene = Scene(module, known)
    found: list[Fact] = []
    for look in (
        retry_facts, entering_facts, section_facts, key_facts, clock_facts, recovery_facts,
    ):  # fmt: skip
        found += look(scene)
    return found


__all__ = ["around", "setting_facts"]
