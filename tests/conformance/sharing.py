"""What locks with readers or permits must do, whatever server they are on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from tests.clients.workers import WorkerUnderTest


def shared_rules(
    powers: Sequence[str], one: WorkerUnderTest, two: WorkerUnderTest, key: str
) -> None:
    """Readers share, a writer does not; two permits are two, and one that is back is another's."""
    numbers = itertools.count()

    def ask(client: WorkerUnderTest, name: str, **kind: Any) -> tuple[str, str]:
        hold = f"s{next(numbers)}"
        reply = client.ask("acquire", key=name, hold=hold, ttl_ms=60_000, timeout_ms=0, **kind)
        return reply.type if reply.type != "fail" else reply.error or "", hold

    if "read" in powers:
        holds = [(client, *ask(client, key, mode="read")) for client in (one, two)]
        assert [outcome for _, outcome, _ in holds] == ["ok", "ok"]
        assert ask(two, f"{key}-other")[0] == "ok"
        assert ask(one, key)[0] == "busy"
        for client, _, hold in holds:
            assert client.ask("release", key=key, hold=hold).type == "ok"
        assert ask(one, key)[0] == "ok"
        assert ask(two, key, mode="read")[0] == "busy"
    if "permits" in powers:
        place = f"{key}-permits"
        (first, hold), (second, _) = ask(one, place, k=2), ask(two, place, k=2)
        assert (first, second) == ("ok", "ok")
        assert ask(two, place, k=2)[0] == "busy"
        assert one.ask("release", key=place, hold=hold).type == "ok"
        assert ask(two, place, k=2)[0] == "ok"
