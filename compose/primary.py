"""Which node grants now, and whether all have found each other: asked for, never remembered."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from compose.backends.spec import BackendSpec
from compose.waiting import wait_until
from harness.core import limits
from harness.core.errors import HarnessError
from harness.core.protocols import Node


def find_primary(spec: BackendSpec, nodes: Mapping[str, Node]) -> str:
    """Name of the node that says it is the primary; of several (a leader that was cut off does not
    know yet) the one of the highest term.  HarnessError if there is none."""
    if spec.no_primary:
        raise HarnessError(f"there is no primary: {spec.no_primary}")
    if spec.ask_primary is not None:
        return spec.ask_primary(nodes)
    claims: list[tuple[int, str]] = []
    answers = []
    for name, facts in facts_of(nodes).items():
        if isinstance(facts, HarnessError):
            answers.append(f"{name}: {facts}")
            continue
        if facts["role"] == "primary":
            claims.append((int(facts.get("term", 0)), name))
        answers.append(f"{name}: {facts['role']}")
    if not claims:
        raise HarnessError(f"no node is a primary now ({'; '.join(answers)})")
    highest = max(term for term, _ in claims)
    return next(name for term, name in claims if term == highest)


def facts_of(nodes: Mapping[str, Node]) -> dict[str, Mapping[str, Any] | HarnessError]:
    """What each node says of itself, or why it says nothing; asked side by side, since whoever
    looks for a primary waits for the answer, and a dead node takes its full time."""

    def ask(node: Node) -> Mapping[str, Any] | HarnessError:
        try:
            return node.facts()
        except HarnessError as error:
            return error

    with ThreadPoolExecutor(max_workers=max(1, len(nodes))) as pool:
        return dict(zip(nodes, pool.map(ask, nodes.values()), strict=True))


def await_formed(spec: BackendSpec, nodes: Mapping[str, Node]) -> None:
    """HarnessError with what is missing if the nodes do not find each other in time."""
    if not wait_until(lambda: not spec.formed(nodes), timeout_s=limits.NODE_READY_TIMEOUT_S):
        raise HarnessError(
            f"backend {spec.name!r} was not whole within {limits.NODE_READY_TIMEOUT_S} s: "
            f"{spec.formed(nodes)}"
        )
