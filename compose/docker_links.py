"""Links of a cluster in containers: which ports, which proxies, and the check that all are there.

    worker ──► 127.0.0.1:port ──► toxiproxy ──► redis:6379       one proxy per worker and node
    node a ──► 127.0.0.1:port of b ──► (a's own toxiproxy) ──► b.real:port      one per ordered pair

A node that talks to others lives in the network namespace of a container ``net-<node>`` beside it,
where a Toxiproxy listens on loopback at every port of its peers and every peer's name means
127.0.0.1; only that Toxiproxy can resolve ``<peer>.real``.  So there is no way round, and it stays
when the server is killed, which a namespace of its own would not.

Traps: an ordered pair has its own proxy, but who dials is the protocol's affair: what a says to b
goes *up* the link a-b and *down* the link b-a.  Toxiproxy ignores what it does not understand, so
what it made is read back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from compose.backends.spec import BackendSpec, NodeSpec
from compose.links import PeerLink, ProxyLink
from compose.registry import family_for
from compose.toxiproxy import ToxiproxyClient
from harness.core import limits
from harness.core.errors import HarnessError

API_PORT = 8474


def net_of(node: str) -> str:
    """Service that owns the network namespace of ``node``."""
    return f"net-{node}"


class Ports(msgspec.Struct, frozen=True):
    """Published ports of a cluster, one range: API, nodes, worker links, then (with peers) the
    API of each node's own Toxiproxy and one port per ordered pair and peer port."""

    first: int
    spec: BackendSpec
    workers: int

    @property
    def count(self) -> int:
        return self._pairs + sum(len(peer.peer_ports) for _, peer in pairs(self.spec))

    @property
    def api(self) -> int:
        return self.first

    @property
    def links(self) -> int:
        """First port of the worker links; there are ``workers`` times the nodes for clients."""
        return self.first + 1 + len(self.spec.nodes)

    @property
    def links_count(self) -> int:
        return self.workers * sum(node.clients for node in self.spec.nodes)

    def node(self, name: str) -> int:
        return self.first + 1 + self.spec.node_names.index(name)

    def net(self, name: str) -> int:
        return self.links + self.links_count + self.spec.node_names.index(name)

    @property
    def _pairs(self) -> int:
        nets = len(self.spec.nodes) if self.spec.has_peers else 0
        return 1 + len(self.spec.nodes) + self.links_count + nets

    def peers(self, name: str) -> Iterator[tuple[NodeSpec, int, int]]:
        """For each way out of a node: the peer, its port, and where that proxy is published."""
        at = self.first + self._pairs
        for node, peer in pairs(self.spec):
            for port in peer.peer_ports:
                if node.name == name:
                    yield peer, port, at
                at += 1


def pairs(spec: BackendSpec) -> list[tuple[NodeSpec, NodeSpec]]:
    """Every ordered pair of nodes whose second one listens for others."""
    return [(a, b) for a in spec.nodes for b in spec.nodes if a is not b and b.peer_ports]


def published(ports: Ports) -> dict[str, Any]:
    """What a Compose file must add so that probes reach the nodes and proxies of the peers."""
    services = {}
    for node in ports.spec.nodes:
        ways = [(API_PORT, ports.net(node.name)), (node.port, ports.node(node.name))]
        ways += [(port, at) for _, port, at in ports.peers(node.name)]
        services[net_of(node.name)] = {"ports": [f"127.0.0.1:{at}:{inside}" for inside, at in ways]}
    return {"services": services}


def populate_peers(ports: Ports, project: str) -> list[PeerLink]:
    """Makes the proxies between nodes; must be done before the servers start."""
    made = []
    for node in ports.spec.nodes:
        api = ToxiproxyClient(f"http://127.0.0.1:{ports.net(node.name)}")
        wanted = []
        parts: dict[str, list[ProxyLink]] = {}
        for peer, port, at in ports.peers(node.name):
            proxy = f"{project}-{node.name}-{peer.name}-{port}"
            # On all its addresses, not only on loopback: published ports arrive from outside.
            wanted.append(
                {"name": proxy, "listen": f"0.0.0.0:{port}", "upstream": f"{peer.name}.real:{port}"}
            )
            parts.setdefault(peer.name, []).append(
                ProxyLink(
                    api,
                    name=f"{node.name}-{peer.name}",
                    src=node.name,
                    dst=peer.name,
                    host="127.0.0.1",
                    port=at,
                    echo=family_for(ports.spec, peer).peer_probe,
                    proxy=proxy,
                )
            )
        _populate(api, wanted)
        made += [PeerLink(group) for group in parts.values()]
    return made


def populate_clients(api: ToxiproxyClient, ports: Ports, project: str) -> list[ProxyLink]:
    """Makes one proxy per worker and node; the ports count up worker by worker."""
    links = []
    wanted = []
    at = ports.links
    for worker in range(ports.workers):
        for node in ports.spec.nodes:
            if not node.clients:
                continue
            # The proxy's name carries the run: a port may come to another run, its name cannot.
            name = f"w{worker}-{node.name}"
            proxy = f"{project}-{name}"
            wanted.append(
                {"name": proxy, "listen": f"0.0.0.0:{at}", "upstream": f"{node.name}:{node.port}"}
            )
            links.append(
                ProxyLink(
                    api,
                    name=name,
                    src=f"w{worker}",
                    dst=node.name,
                    host="127.0.0.1",
                    port=at,
                    echo=family_for(ports.spec, node).probe,
                    proxy=proxy,
                )
            )
            at += 1
    _populate(api, wanted)
    return links


def check_links(links: Sequence[ProxyLink | PeerLink]) -> None:
    """HarnessError that names every link through which nothing answers."""
    dead = [
        link.name for link in links if link.probe(limits.EVIDENCE_TIMEOUT_MS).outcome != "answered"
    ]
    if dead:
        raise HarnessError(f"no answer through the links {', '.join(dead)}")


def _populate(api: ToxiproxyClient, wanted: Sequence[Mapping[str, str]]) -> None:
    api.populate(wanted)
    there = api.proxies()
    missing = [proxy["name"] for proxy in wanted if not there.get(proxy["name"], {}).get("enabled")]
    if missing:
        raise HarnessError(f"Toxiproxy does not list the proxies {', '.join(missing)}")
