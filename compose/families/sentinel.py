"""Redis Sentinel as a family of servers: what one sentinel knows of the primary it watches.

    family.facts("127.0.0.1", 26001)["primary"]    # "redis2:7002"
    family.facts("127.0.0.1", 26001)["term"]       # 1: config epoch, one more per fail-over

Traps.  A sentinel knows no ECHO: it answers with an error that repeats the word, and counts it
(``total_error_replies``), so that the echo proves an arrival here as well.  A client that sends
what sentinels do not know moves that count, too: CLIENT SETINFO is unknown to Redis 7.0.  It has
no TIME and no data: its clock stands in INFO, and the mark that proves a restart is a setting
without effect (``sentinel-user``, used only beside a password), which it writes to its file.
Its addresses are those that servers announce, so names in containers.
Reference: Redis documentation, "High availability with Redis Sentinel", "Sentinel commands".
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compose.families import resp
from compose.families.redis import RedisFamily
from compose.waiting import wait_until
from harness.core import limits
from harness.core.errors import AnsweredError, HarnessError
from harness.core.protocols import ClockReading

SERVICE = "lockhavoc"  # the name under which sentinels watch the primary
_DOWN = {"s_down", "o_down", "disconnected"}
_PROMOTE_S = 10  # it is done in one to three
_MARK_SETTING = "sentinel-user"


class SentinelFamily(RedisFamily):
    """``Family`` for sentinels; what is not said here is as for any server of Redis' protocol."""

    name = "sentinel"

    def facts(
        self, host: str, port: int, timeout_ms: int = limits.EVIDENCE_TIMEOUT_MS
    ) -> dict[str, Any]:
        """``role`` is member.  ``primary`` (address), ``flags`` ("master", or also s_down ...),
        ``term``: what it takes for the primary.  ``replicas`` and ``sentinels``: others that are
        up to it.  ``quorum``: enough sentinels for a fail-over.  ``tilt``: it trusts nothing now.
        """
        info, address, master, replicas, sentinels = resp.ask(
            host,
            port,
            ("INFO", "everything"),
            ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE),
            ("SENTINEL", "MASTER", SERVICE),
            ("SENTINEL", "REPLICAS", SERVICE),
            ("SENTINEL", "SENTINELS", SERVICE),
            timeout_ms=timeout_ms,
        )
        told, primary = resp.fields(info), _pairs(master)
        try:
            return {
                "role": "member",
                "run_id": told["run_id"],
                "uptime_s": int(told["uptime_in_seconds"]),
                "keys": 0,
                "commands": int(told["total_commands_processed"]),
                "echoes": int(told["total_error_replies"]),
                "persistent": True,
                "server": "valkey" if "valkey_version" in told else "redis",
                "version": told.get("valkey_version") or told["redis_version"],
                "pid": int(told["process_id"]),
                "primary": address.replace("\n", ":"),
                "flags": primary["flags"],
                "term": int(primary["config-epoch"]),
                "replicas": _up(replicas),
                "sentinels": _up(sentinels),
                "quorum": _agree(primary, _up(sentinels) + 1),
                "tilt": told["sentinel_tilt"] == "1",
            }
        except (KeyError, ValueError) as error:
            raise HarnessError(
                f"sentinel at {host}:{port}: its answers lack or garble the field {error}"
            ) from error

    def check_ready(self, host: str, port: int) -> None:
        # Not the quorum: sentinels that were all killed must be able to come back one by one.
        resp.ask(host, port, ("SENTINEL", "MASTER", SERVICE), timeout_ms=limits.PROBE_TIMEOUT_MS)

    def clock(self, host: str, port: int) -> ClockReading:
        before_ns = time.time_ns()
        (info,) = resp.ask(host, port, ("INFO", "server"))
        after_ns = time.time_ns()
        there_ns = int(resp.fields(info)["server_time_usec"]) * 1000
        # The time is that of its event loop's last turn, which waited for this very request.
        return ClockReading(
            there_ns - (before_ns + after_ns) // 2, (after_ns - before_ns) // 2 + 1_000_000
        )

    def promote(self, host: str, port: int) -> None:
        """Has a replica of its choice promoted, without asking the other sentinels."""
        before = self.facts(host, port)

        def begun() -> bool:
            try:
                resp.ask(host, port, ("SENTINEL", "FAILOVER", SERVICE))
            except AnsweredError as error:
                # NOGOODSLAVE: it has heard too little of the replicas lately, which it soon will.
                # INPROG: the sentinels were quicker, which is no less of a fail-over.
                if "NOGOODSLAVE" in str(error):
                    return False
                if "INPROG" not in str(error):
                    raise
            return True

        if not wait_until(begun, timeout_s=_PROMOTE_S):
            raise HarnessError(
                f"sentinel at {host}:{port}: found no replica fit to be promoted in {_PROMOTE_S} s"
            )

        def replaced() -> bool:
            now = self.facts(host, port)
            return bool(now["term"] > before["term"] and now["primary"] != before["primary"])

        if not wait_until(replaced, timeout_s=_PROMOTE_S):
            raise HarnessError(
                f"sentinel at {host}:{port}: {before['primary']} was not replaced in {_PROMOTE_S} s"
                " after SENTINEL FAILOVER"
            )

    def leave_mark(self, host: str, port: int, mark: str) -> None:
        resp.ask(host, port, ("SENTINEL", "CONFIG", "SET", _MARK_SETTING, mark))

    def has_mark(self, host: str, port: int, mark: str) -> bool:
        (reply,) = resp.ask(host, port, ("SENTINEL", "CONFIG", "GET", _MARK_SETTING))
        return mark in reply.split("\n")


def _agree(primary: Mapping[str, str], up: int) -> bool:
    """Are there enough sentinels to call the primary down and to elect who replaces it?

    What CKQUORUM answers; but that answers "no" with an error, which would count as an echo.
    """
    known = int(primary["num-other-sentinels"]) + 1
    return up >= max(int(primary["quorum"]), known // 2 + 1)


def _up(reply: str) -> int:
    """How many of the instances listed are up, as far as this sentinel sees.

    A sentinel's flag ``master_down`` is what it said last of the primary, and may be long over.
    """
    seen = [instance["flags"].split(",") for instance in _instances(reply.split("\n"))]
    return sum(not _DOWN.intersection(flags) for flags in seen)


def _instances(words: Sequence[str]) -> Iterator[dict[str, str]]:
    """Flat lists of names and values, one after another; each begins with "name"."""
    pairs = list(zip(words[::2], words[1::2], strict=False))
    starts = [at for at, (name, _) in enumerate(pairs) if name == "name"]
    for start, end in zip(starts, [*starts[1:], len(pairs)], strict=True):
        yield dict(pairs[start:end])


def _pairs(reply: str) -> dict[str, str]:
    words = reply.split("\n")
    return dict(zip(words[::2], words[1::2], strict=False))
