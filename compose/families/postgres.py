"""PostgreSQL as a family of servers: what it is asked, in SQL.

    family = FAMILIES.load("postgres")()
    family.facts("127.0.0.1", 5432)["role"]       # "primary", or "replica" of a standby

The echo is a function made by compose/images/postgres/init.sql.  On a primary it draws from a
sequence, whose last value is then the exact count of echoes that arrived.  A standby cannot write,
so there its calls are counted by the statistics of functions: a backend adds its own when it ends,
which is some milliseconds late, and a restart of the server forgets them.

A *term* is the timeline: it grows by one with each promotion, so of two servers that both call
themselves primary the one of the higher timeline was promoted over the other.

Traps: the run id is the start of the postmaster, not of the machine.  A mark in a table would come
back from the other server, and a standby could not set one; a replication slot (which reserves
nothing) is on the disk of one server alone, of a standby as well.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compose.families import pgwire
from compose.families.base import Family
from harness.core import limits
from harness.core.clock import MonotonicClock
from harness.core.errors import AnsweredError, HarnessError
from harness.core.protocols import ClockReading, Probe
from harness.core.undo import Step, argv_step

_CLOCK = MonotonicClock()
_ROOT = Path(__file__).parents[2]
_PROMOTE_S = 15  # it applies the log that it has, then opens; 0.2 s when idle
_NAME_CHARS_MAX = 63  # of an identifier
# The functions behind the views: a fresh session takes longest to make a plan of a view.
_FACTS = """
SELECT CASE WHEN pg_is_in_recovery() THEN 'replica' ELSE 'primary' END AS role,
       extract(epoch FROM pg_postmaster_start_time()) AS run_id,
       split_part(current_setting('server_version'), ' ', 1) AS version,
       CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint())
            ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
       END AS term,
       lockhavoc_echoes() AS echoes,
       (SELECT count(*) FROM pg_lock_status() WHERE locktype = 'advisory' AND granted) AS keys,
       floor(extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())) AS uptime_s,
       (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
             ELSE pg_current_wal_lsn() END) - '0/0'::pg_lsn AS lsn,
       current_setting('default_transaction_read_only') = 'on' AS read_only,
       CASE WHEN pg_is_in_recovery()
            THEN (SELECT count(*) FROM pg_stat_get_wal_receiver() WHERE status = 'streaming')
            ELSE (SELECT count(*) FROM pg_stat_get_wal_senders() WHERE state = 'streaming')
       END AS streaming
"""
_NUMBERS = ("term", "echoes", "keys", "uptime_s", "lsn", "streaming")


class PostgresFamily(Family):
    """``Family`` for PostgreSQL servers that were made by our image."""

    name = "postgres"

    def probe(self, host: str, port: int, timeout_ms: int) -> Probe:
        return probe(host, port, timeout_ms)

    def facts(
        self, host: str, port: int, timeout_ms: int = limits.EVIDENCE_TIMEOUT_MS
    ) -> dict[str, Any]:
        """Besides those of every family: ``lsn`` (bytes of log written or replayed so far),
        ``streaming`` (connections that replicate), ``read_only``; ``keys`` counts the advisory
        locks that are held."""
        (row,) = pgwire.table(host, port, _FACTS, timeout_ms=timeout_ms)
        found: dict[str, Any] = dict(row)
        found |= {name: int(found[name]) for name in _NUMBERS}
        found["read_only"] = found["read_only"] == "t"
        return {**found, "server": "postgresql", "persistent": True}

    def check_ready(self, host: str, port: int) -> None:
        pgwire.ask(host, port, "SELECT 1", timeout_ms=limits.PROBE_TIMEOUT_MS)

    def clock(self, host: str, port: int) -> ClockReading:
        asks = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
        with pgwire.talk(host, port, asks) as connection:
            connection.ask(asks)
            before_ns = time.time_ns()
            ((there,),) = connection.again(asks)
            after_ns = time.time_ns()
        return ClockReading(
            int(there) * 1000 - (before_ns + after_ns) // 2, (after_ns - before_ns) // 2 + 1000
        )

    def leave_mark(self, host: str, port: int, mark: str) -> None:
        # Only the last one is kept: a server has few slots.
        pgwire.ask(
            host,
            port,
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
            "WHERE starts_with(slot_name, 'lockhavoc')",
        )
        pgwire.ask(host, port, "SELECT pg_create_physical_replication_slot(%s)", _slot(mark))

    def has_mark(self, host: str, port: int, mark: str) -> bool:
        sql = "SELECT FROM pg_replication_slots WHERE slot_name = %s"
        return bool(pgwire.ask(host, port, sql, _slot(mark)))

    def promote(self, host: str, port: int) -> None:
        ask = f"SELECT pg_is_in_recovery() AND pg_promote(wait_seconds => {_PROMOTE_S})"
        try:
            answer = pgwire.ask(host, port, ask, timeout_ms=(_PROMOTE_S + 1) * 1000)
        except AnsweredError as error:
            raise HarnessError(f"server at {host}:{port} was not promoted: {error}") from error
        if answer != [["t"]]:
            raise HarnessError(
                f"server at {host}:{port} was not promoted: it is no standby, or did not get "
                f"through its log in {_PROMOTE_S} s"
            )

    def command(self, host: str, port: int, words: Sequence[str]) -> str:
        """One SQL statement; rows as lines, cells apart by tabs."""
        return "\n".join("\t".join(row) for row in pgwire.ask(host, port, " ".join(words)))

    def undo_command(self, host: str, port: int, words: Sequence[str]) -> Sequence[Step]:
        run_id = str(self.facts(host, port)["run_id"])
        argv = [sys.executable, "-m", pgwire.__name__, host, str(port), run_id, " ".join(words)]
        return [argv_step(argv, env={"PYTHONPATH": str(_ROOT)})]

    def sessions(self, host: str, port: int, name: str) -> list[str]:
        sql = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"
        rows = pgwire.ask(host, port, sql, name)
        return [pid for (pid,) in rows]

    def end_session(self, host: str, port: int, identity: str) -> None:
        pgwire.ask(host, port, f"SELECT pg_terminate_backend({int(identity)})")


def probe(host: str, port: int, timeout_ms: int, *, database: str = "postgres") -> Probe:
    """One echo: it draws from the sequence, and sends a fresh word that must come back.  An error
    is an answer."""
    nonce = f"lockhavoc:{os.urandom(8).hex()}"
    try:
        connection = pgwire.Connection(host, port, timeout_ms)
    except TimeoutError:
        return Probe("silent")
    except OSError:
        return Probe("refused")
    with connection:
        sent_ns = _CLOCK.now()
        try:
            rows = connection.ask(f"SELECT '{nonce}', lockhavoc_echo()", database=database)
        except AnsweredError:
            return Probe("answered", _CLOCK.now() - sent_ns)
        except TimeoutError:
            return Probe("silent")
        except (pgwire.Closed, HarnessError, OSError):
            return Probe("closed")
        if [row[:1] for row in rows] != [[nonce]]:  # a stranger, or an answer to somebody else
            return Probe("closed")
        return Probe("answered", _CLOCK.now() - sent_ns)


def _slot(mark: str) -> str:
    """A name for a replication slot: lower case letters, digits and underscores."""
    return re.sub(r"[^a-z0-9_]", "_", mark.lower())[-_NAME_CHARS_MAX:]
