"""What adapters of libraries on PostgreSQL share that bring their own way to connect.

Facts about session locks are in psycopg_common.py; this has options and a checked address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from clients.worker.adapter import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Options(NamedTuple):
    """[client.options] of a scenario.  connect_timeout_s: whole seconds, libpq's unit."""

    database: str = "postgres"
    user: str = "postgres"
    connect_timeout_s: int = 2


class Address(NamedTuple):
    """The one server that these libraries are given."""

    host: str
    port: int
    options: Options

    @property
    def name(self) -> str:
        """The name of the connection, by which a fault finds it at the server."""
        return f"lockhavoc-{self.port}"

    def url(self, scheme: str = "postgresql") -> str:
        """A URL for SQLAlchemy or libpq."""
        extra = f"application_name={self.name}&connect_timeout={self.options.connect_timeout_s}"
        where = f"{self.options.user}@{self.host}:{self.port}/{self.options.database}"
        return f"{scheme}://{where}?{extra}&sslmode=disable"


def address_of(nodes: Sequence[Mapping[str, Any]], given: Mapping[str, Any]) -> Address:
    """The first node with checked options; Refused names every one that is unknown."""
    problems = [
        f"option {name!r} is unknown (known: {', '.join(Options._fields)})"
        for name in given
        if name not in Options._fields
    ]
    if problems or not nodes:
        raise Refused("; ".join(problems) or "there are no nodes to lock on")
    return Address(str(nodes[0]["host"]), int(nodes[0]["port"]), Options(**given))
