"""Redis and Valkey as a family of servers; the wire protocol is in ``resp.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compose.families import resp
from compose.families.base import Family
from harness.core import limits
from harness.core.protocols import ClockReading, Probe
from harness.core.undo import Step, resp_step


class RedisFamily(Family):
    """``Family`` for servers that speak Redis' protocol."""

    name = "redis"

    def probe(self, host: str, port: int, timeout_ms: int) -> Probe:
        return resp.probe(host, port, timeout_ms)

    def facts(
        self, host: str, port: int, timeout_ms: int = limits.EVIDENCE_TIMEOUT_MS
    ) -> dict[str, Any]:
        return resp.facts(host, port, timeout_ms)

    def check_ready(self, host: str, port: int) -> None:
        # While a server loads its file it answers ECHO and INFO, but refuses DBSIZE.
        resp.ask(host, port, ("DBSIZE",), timeout_ms=limits.PROBE_TIMEOUT_MS)

    def clock(self, host: str, port: int) -> ClockReading:
        return resp.clock(host, port)

    def leave_mark(self, host: str, port: int, mark: str) -> None:
        resp.leave_mark(host, port, mark)

    def has_mark(self, host: str, port: int, mark: str) -> bool:
        return resp.has_mark(host, port, mark)

    def command(self, host: str, port: int, words: Sequence[str]) -> str:
        return resp.ask(host, port, words)[0]

    def undo_command(self, host: str, port: int, words: Sequence[str]) -> Sequence[Step]:
        run_id = str(self.facts(host, port)["run_id"])
        return [resp_step(host, port, words, run_id=run_id)]

    def sessions(self, host: str, port: int, name: str) -> list[str]:
        return resp.sessions(host, port, name)

    def end_session(self, host: str, port: int, identity: str) -> None:
        resp.end_session(host, port, identity)


class ReplicatedRedisFamily(RedisFamily):
    """The same where servers copy one another: lost data come back, and a replica takes no write,
    so that only a mark beside its data tells whether it kept them."""

    name = "redis-replicated"
    replicated = True
