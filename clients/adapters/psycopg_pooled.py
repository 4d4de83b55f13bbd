"""Where a psycopg adapter's connections come from: one of its own, or psycopg_pool's.

    with self.lent() as lent:                  # acquire
        ...lent.connection.execute(...)
        return Grant(owner, token, lent.kept())
    with self.lent(kept) as lent: ...          # release

Facts, read in psycopg_pool 3.3's ``pool.py``:

- ``getconn`` waits in a queue for at most ``timeout``, then raises PoolTimeout: nothing was sent.
- Giving one back ends its transaction, and no more: a session's advisory locks stay in it.  One
  that is broken is thrown away and replaced by the pool itself.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from clients.adapters import psycopg_common as common
from clients.worker.adapter import Definite, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

OPEN_S = 5.0


class Lent:
    """A connection for one call.  keeps: does the lock keep it beyond the call that got it?"""

    def __init__(self, connection: Any, *, keeps: bool) -> None:
        self.connection = connection
        self.goes_back = True
        self._keeps = keeps

    def kept(self) -> Any:
        """What release needs to have the same connection again; None if it needs none."""
        if not self._keeps:
            return None
        self.goes_back = False
        return self.connection


class Pooled(common.OneSession):
    """Optional power: connections from a pool (clients/worker/adapter.py, ``draw_from``)."""

    _size = 0  # 0: no pool, but one connection
    _per = "operation"
    _wait_s = 0.0
    pool: Any = None
    ERRORS: Mapping[type[BaseException], Definite]

    def draw_from(self, size: int, per: str, wait_ms: int) -> None:
        try:
            import psycopg_pool
        except ImportError as error:
            raise Refused(f"a pool needs the distribution psycopg-pool: {error}") from error
        self._size, self._per, self._wait_s = size, per, wait_ms / 1000
        self.ERRORS = {**self.ERRORS, psycopg_pool.PoolTimeout: Definite()}

    def open_any(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        """One connection, or the pool; Refused if there is no way to a server."""
        if not self._size:
            self.connect(nodes, options)
            return
        import psycopg_pool

        settled = common.read_options(options)
        node, *others = common.known_nodes(nodes, settled)
        if others:
            raise Refused("a pool is of one server; name it by the option node")
        self._names = {int(node["port"]): str(node["name"])}
        self.pool = psycopg_pool.ConnectionPool(
            kwargs=common.arguments(node, settled, alone=True),
            min_size=self._size,
            max_size=self._size,
            timeout=self._wait_s,
            open=True,
        )
        try:
            self.pool.wait(OPEN_S)
        except psycopg_pool.PoolTimeout as error:
            self.pool.close()
            raise Refused(f"cannot connect {self._size} times within {OPEN_S:.0f} s") from error

    def granted_by(self) -> list[str]:
        """The one server of the pool, or that of the connection."""
        return super().granted_by() if self.pool is None else list(self._names.values())

    @contextlib.contextmanager
    def lent(self, kept: Any = None) -> Iterator[Lent]:
        """A connection, which goes back at the end unless the lock keeps it."""
        if self.pool is None:
            yield Lent(self.connection, keeps=False)
            return
        connection = self.pool.getconn() if kept is None else kept
        lent = Lent(connection, keeps=self._per == "section")
        try:
            yield lent
        finally:
            if lent.goes_back:
                self.pool.putconn(connection)

    def close_any(self) -> None:
        if self.pool is None:
            self.connection.close()
        else:
            self.pool.close()
