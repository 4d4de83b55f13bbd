"""A link: the way of one worker to one node, through its own proxy.

    link = ProxyLink(api, name="w0-redis", src="w0", dst="redis", host="127.0.0.1", port=40001,
                     echo=family.probe)
    link.set_enabled(False); link.probe(250).outcome      # "refused"

Traps: two toxics on one stream disturb each other: adding or removing one lets go a chunk that
the neighbour holds back.  So faults ask ``toxics()`` first and never overlap on a link.  Ports are
used again by the system, hence the proxy's name should carry the run's: an old ledger then finds
nothing (404) instead of healing a stranger's link.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from compose.toxiproxy import NotFoundError, ToxiproxyClient, toxic_name
from harness.core.protocols import Direction, Probe
from harness.core.undo import Step, http_step

Echo = Callable[[str, int, int], Probe]
"""echo(host, port, timeout_ms): the backend's own way to ask "are you there"."""

# Kinds of toxics a link may carry.  The list is closed because undo steps name each one.
TOXIC_KINDS = ("latency", "bandwidth", "timeout", "limit_data", "slow_close", "reset_peer")
# Removing a toxic that holds bytes hangs for ever, with a lock on its proxy, if the reader of those
# bytes is gone and there are more than two chunks (Toxiproxy 2.12, link.go, RemoveToxic).  Made
# harmless first, it hands them on by itself, and a dead connection drops out.
LETS_GO: Mapping[str, Mapping[str, int]] = {
    "latency": {"latency": 0, "jitter": 0},
    "bandwidth": {"rate": 1 << 30},
}
DRAIN_MS = 10  # from the first write to a dead connection to its end: microseconds
DIRECTIONS: tuple[Direction, ...] = ("upstream", "downstream")


class ProxyLink:
    """``harness.core.protocols.Link`` over one Toxiproxy proxy.

    proxy: the proxy's name at the server, if it differs from the link's.
    """

    def __init__(
        self,
        api: ToxiproxyClient,
        *,
        name: str,
        src: str,
        dst: str,
        host: str,
        port: int,
        echo: Echo,
        proxy: str | None = None,
    ) -> None:
        self.name, self.src, self.dst = name, src, dst
        self.host, self.port = host, port
        self.proxy = proxy or name
        self._api, self._echo = api, echo

    def __repr__(self) -> str:
        return f"ProxyLink({self.name}, {self.host}:{self.port})"

    def undo(self, *kinds: str) -> Sequence[Step]:
        """What holds bytes lets them go, then DELETE of every toxic it may carry (of these kinds),
        then enable; each is nothing if not needed."""
        url = f"{self._api.base_url}/proxies/{quote(self.proxy, safe='')}"
        toxic = {
            (kind, direction): f"{url}/toxics/{toxic_name(kind, direction)}"
            for kind in kinds or TOXIC_KINDS
            for direction in DIRECTIONS
        }
        let_go = [
            http_step("PATCH", at, {"attributes": LETS_GO[kind]})
            for (kind, _), at in toxic.items()
            if kind in LETS_GO
        ]
        deletes = [
            http_step("DELETE", at, wait_ms=DRAIN_MS if kind in LETS_GO else 0)
            for (kind, _), at in toxic.items()
        ]
        return [*let_go, *deletes, http_step("POST", url, {"enabled": True})]

    def add_toxic(self, kind: str, direction: Direction, attributes: Mapping[str, Any]) -> None:
        """Adds a toxic; ValueError for a kind outside TOXIC_KINDS, ConflictError if there."""
        if kind not in TOXIC_KINDS:
            raise ValueError(f"toxic kind {kind!r}: must be one of {', '.join(TOXIC_KINDS)}")
        self._api.add_toxic(self.proxy, kind=kind, stream=direction, attributes=attributes)

    def remove_toxic(self, kind: str, direction: Direction) -> None:
        with contextlib.suppress(NotFoundError):
            self._remove(kind, toxic_name(kind, direction))

    def set_enabled(self, enabled: bool) -> None:
        self._api.set_enabled(self.proxy, enabled)

    def clear(self) -> None:
        for toxic in self._api.toxics(self.proxy):
            with contextlib.suppress(NotFoundError):
                self._remove(toxic["type"], toxic["name"])
        self._api.set_enabled(self.proxy, True)

    def _remove(self, kind: str, toxic: str) -> None:
        if kind in LETS_GO:
            self._api.patch_toxic(self.proxy, toxic, LETS_GO[kind])
            time.sleep(DRAIN_MS / 1000)
        self._api.delete_toxic(self.proxy, toxic)

    def toxics(self) -> Sequence[Mapping[str, Any]]:
        state = self._api.proxy(self.proxy)
        disabled = [] if state["enabled"] else [{"enabled": False}]
        return [*disabled, *state["toxics"]]

    def probe(self, timeout_ms: int) -> Probe:
        return self._echo(self.host, self.port, timeout_ms)


class PeerLink:
    """``harness.core.protocols.Link`` from one node to another: one proxy per port of the peer.

    What is done to it is done to each of them.  Its echo goes to the first, which must be a port
    where the peer always listens.
    """

    def __init__(self, parts: Sequence[ProxyLink]) -> None:
        first = parts[0]
        self.name, self.src, self.dst = first.name, first.src, first.dst
        self.host, self.port = first.host, first.port
        self._parts = list(parts)

    def __repr__(self) -> str:
        return f"PeerLink({self.name}, {len(self._parts)} ports)"

    def undo(self, *kinds: str) -> Sequence[Step]:
        return [step for part in self._parts for step in part.undo(*kinds)]

    def add_toxic(self, kind: str, direction: Direction, attributes: Mapping[str, Any]) -> None:
        for part in self._parts:
            part.add_toxic(kind, direction, attributes)

    def remove_toxic(self, kind: str, direction: Direction) -> None:
        for part in self._parts:
            part.remove_toxic(kind, direction)

    def set_enabled(self, enabled: bool) -> None:
        for part in self._parts:
            part.set_enabled(enabled)

    def clear(self) -> None:
        for part in self._parts:
            part.clear()

    def toxics(self) -> Sequence[Mapping[str, Any]]:
        """Those of one port if all are alike, else all of them (half a fault is not the fault)."""
        each = [list(part.toxics()) for part in self._parts]
        if all(toxics == each[0] for toxics in each):
            return each[0]
        return [toxic for toxics in each for toxic in toxics]

    def probe(self, timeout_ms: int) -> Probe:
        return self._parts[0].probe(timeout_ms)
