"""The text of the bench and its checks, and the rules they are for, without importing them.

SOURCE; RULES

Traps: the bench needs ``redis``, which the harness itself does not: so it is read and not imported.
"""

from __future__ import annotations

import ast
from pathlib import Path

_HERE = Path(__file__).parent
_CHECKS = (_HERE / "checks.py").read_text(encoding="utf-8")


def _joined() -> str:
    """Both files as one, without their docstrings and without the import of one by the other."""
    bench = (_HERE / "bench.py").read_text(encoding="utf-8").partition('"""\n')[2]
    checks = _CHECKS[_CHECKS.index("\ndef check(") + 1 :]
    return bench.rstrip() + "\n\n\n" + checks


def _rules() -> tuple[str, ...]:
    for node in ast.parse(_CHECKS).body:
        value = node.value if isinstance(node, ast.AnnAssign) else None
        if isinstance(value, ast.Dict):
            return tuple(str(k.value) for k in value.keys if isinstance(k, ast.Constant))
    raise AssertionError("checks.py has no CHECKS")


SOURCE = _joined()
RULES = _rules()
