"""PgBouncer as a family of servers: a pooler that speaks PostgreSQL's protocol.

    family.facts("127.0.0.1", 6432)["role"]       # "member": it grants nothing itself

The echo goes through the pooler to the server behind it, on a pool of its own (database "echo"),
and draws from the same sequence as the echo of that server: what arrives there was let through
here.  So an echo answers only if both are there, and a direct echo of the server counts too.

Trap: its console (the database "pgbouncer") answers while the server is gone.
"""

from __future__ import annotations

from typing import Any

from compose.families import pgwire
from compose.families.base import Family
from compose.families.postgres import probe
from harness.core import limits
from harness.core.errors import AnsweredError, HarnessError
from harness.core.protocols import Probe

ECHO, CONSOLE = "echo", "pgbouncer"


class PgbouncerFamily(Family):
    """``Family`` for PgBouncer as our image configures it."""

    name = "pgbouncer"

    def probe(self, host: str, port: int, timeout_ms: int) -> Probe:
        return probe(host, port, timeout_ms, database=ECHO)

    def facts(
        self, host: str, port: int, timeout_ms: int = limits.EVIDENCE_TIMEOUT_MS
    ) -> dict[str, Any]:
        """``keys``: clients that are connected."""
        ((echoes,),) = pgwire.ask(
            host, port, "SELECT lockhavoc_echoes()", database=ECHO, timeout_ms=timeout_ms
        )
        (version,) = self._console(host, port, "SHOW VERSION")
        config = {row["key"]: row["value"] for row in self._console(host, port, "SHOW CONFIG")}
        clients = self._console(host, port, "SHOW CLIENTS")
        return {
            "role": "member",
            "server": "pgbouncer",
            "version": version["version"].rpartition(" ")[2],
            "run_id": config["pidfile"],
            "echoes": int(echoes),
            "keys": sum(client["database"] not in (ECHO, CONSOLE) for client in clients),
            "persistent": False,
        }

    def check_ready(self, host: str, port: int) -> None:
        pgwire.ask(host, port, "SELECT 1", database=ECHO, timeout_ms=limits.PROBE_TIMEOUT_MS)

    def sessions(self, host: str, port: int, name: str) -> list[str]:
        clients = self._console(host, port, "SHOW CLIENTS")
        if any("id" not in client for client in clients):
            raise HarnessError("this PgBouncer is older than 1.24 and cannot end a single client")
        return [client["id"] for client in clients if client["application_name"] == name]

    def end_session(self, host: str, port: int, identity: str) -> None:
        try:
            self._console(host, port, f"KILL_CLIENT {int(identity)}")
        except AnsweredError:
            clients = self._console(host, port, "SHOW CLIENTS")
            if any(client["id"] == identity for client in clients):
                raise  # else it has gone by itself

    def _console(self, host: str, port: int, command: str) -> list[dict[str, str]]:
        return pgwire.table(host, port, command, database=CONSOLE)
