"""Clusters in containers: ``docker compose`` brings them up, Toxiproxy stands in every link.

    cluster = DockerRuntime().up("redis-single", {}, workers=3, run_dir=path, ledger=ledger)
    cluster.endpoints(0)       # [{"name": "redis", "host": "127.0.0.1", "port": 24117}]
    cluster.down()             # no container, network or volume is left

    worker ──► 127.0.0.1:port ──► toxiproxy ──► redis:6379        one port per worker and node
    harness ─► 127.0.0.1:port ──────────────► redis:6379        direct, for probes

Traps: ports of 127.0.0.1 are served by the Engine's own proxy, which accepts and then closes where
a bare process would refuse: a severed link therefore shows as *closed* or *refused* · ephemeral
ports change when a container starts again, so ports are fixed up front, and tried again with
others if somebody was quicker · the server's name is resolved by Toxiproxy at each dial, so a
restarted server with another address is found again.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from compose import docker_images as images
from compose.backends.spec import BackendSpec
from compose.docker_clock import overlay
from compose.docker_compose import FILES, ComposeError, Project, undo_steps
from compose.docker_engine import Container, Engine
from compose.docker_fit import check
from compose.docker_here import ask, engine_reason
from compose.docker_links import (
    Ports,
    check_links,
    net_of,
    populate_clients,
    populate_peers,
    published,
)
from compose.docker_netns import Namespace
from compose.docker_nodes import DockerNode
from compose.docker_ports import free_range
from compose.links import PeerLink, ProxyLink
from compose.primary import await_formed, find_primary
from compose.registry import BACKENDS, family_for
from compose.toxiproxy import ToxiproxyClient
from harness.core import limits
from harness.core.errors import HarnessError, RefusedError
from harness.core.protocols import Ledger, Node
from harness.core.skew import SkewFile

TOXIPROXY = "toxiproxy"
TOXIPROXY_RELEASE = "trixie"  # RELEASE is about the servers; the proxy is the same for all
PORT_TRIES_MAX = 5


class DockerCluster:
    """``harness.core.protocols.Cluster`` in one Compose project."""

    def __init__(
        self,
        spec: BackendSpec,
        project: Project,
        engine: Engine,
        *,
        nodes: Mapping[str, DockerNode],
        links: Sequence[ProxyLink | PeerLink],
        proxies: Mapping[str, Container],
        versions: Mapping[str, str],
        ledger: Ledger,
        promise: int,
    ) -> None:
        self._spec, self.project = spec, project
        self.nodes: Mapping[str, Node] = dict(nodes)
        self.links = tuple(links)
        self.versions = dict(versions)
        self._engine, self._proxies = engine, proxies
        self._docker_nodes = dict(nodes)
        self._ledger, self._promise = ledger, promise

    def endpoints(self, worker: int) -> Sequence[Mapping[str, Any]]:
        own = [link for link in self.links if link.src == f"w{worker}"]
        if not own:
            raise HarnessError(f"worker {worker}: has no link; the cluster was made for fewer")
        inside = {node.name: node.port for node in self._spec.nodes}
        return [
            {"name": link.dst, "host": link.host, "port": link.port}
            | {"address": f"{link.dst}:{inside[link.dst]}"}
            for link in own
        ]

    def container_id(self, node: str) -> str:
        """Full id of a node's container, for what the docker client alone can do."""
        return self._docker_nodes[node].container.id

    def primary(self) -> str:
        """HarnessError if no node is one now, or if the backend can have none."""
        return find_primary(self._spec, self.nodes)

    def collect_logs(self, into: Path) -> None:
        """Also the logs of the proxies, as ``toxiproxy.log`` and ``net-<node>.log``."""
        into.mkdir(parents=True, exist_ok=True)
        for name, node in self._docker_nodes.items():
            (into / f"{name}.log").write_bytes(node.logs())
        for name, container in self._proxies.items():
            (into / f"{name}.log").write_bytes(container.logs())

    def down(self) -> None:
        """Idempotent; HarnessError (and the promise stays open) if something is left."""
        self.project.down()
        self._ledger.done(self._promise)
        self._engine.close()


class DockerRuntime:
    """``harness.core.protocols.Runtime`` on a Docker Engine of this machine."""

    name = "docker"

    def __init__(self) -> None:
        self.clock_shim: Path | None = None  # protocols.ClockShimmed

    def can(self, backend: str) -> str | None:
        """Looks at Engine, plugins and images; a fraction of a second on an idle machine."""
        spec: BackendSpec = BACKENDS.load(backend)
        reason = engine_reason()
        if reason:
            return reason
        release = os.environ.get("RELEASE") or spec.releases[0]
        if release not in spec.releases:
            known = ", ".join(spec.releases)
            return spec.releases_refused.get(release, f"RELEASE={release!r}: known are {known}")
        return images.cannot_build(spec.image, release=release) or images.cannot_build(
            TOXIPROXY, release=TOXIPROXY_RELEASE
        )

    def up(
        self,
        backend: str,
        options: Mapping[str, Any],
        *,
        workers: int,
        run_dir: Path,
        ledger: Ledger,
    ) -> DockerCluster:
        """Builds images if need be, then starts.  UserError for wrong options, RefusedError if it
        cannot be done here, HarnessError if the cluster does not come up (nothing is left then).
        """
        spec: BackendSpec = BACKENDS.load(backend)
        settled = spec.settle(options, runtime=self.name)
        reason = engine_reason()
        if reason:
            raise RefusedError(f"runtime docker: {reason}")
        server_image = settled["image"] or images.ensure(spec.image, release=settled["release"])
        if settled["image"]:
            pull(server_image)
            check(server_image, spec, shim=self.clock_shim)
        proxy_image = images.ensure(TOXIPROXY, release=TOXIPROXY_RELEASE)
        env = {
            "LOCKHAVOC_IMAGE": server_image,
            "LOCKHAVOC_TOXIPROXY_IMAGE": proxy_image,
            "LOCKHAVOC_SERVER_ARGS": shlex.join(spec.server_args(settled)),
            **spec.compose_env(settled),
        }
        files = [FILES / spec.compose_file]
        clocks: Mapping[str, SkewFile] = {}
        if self.clock_shim is not None:
            file, clocks = overlay(spec.node_names, run_dir=run_dir, shim=self.clock_shim)
            files.append(file)
        name = f"lockhavoc-{os.urandom(6).hex()}"
        project = Project(name, files, env)
        promise = ledger.promise(undo_steps(project.name), why=f"containers of {project.name}")
        try:
            ports, peers = _start(project, spec, workers, run_dir)
            return _assemble(project, ports, peers, ledger, promise, clocks)
        except BaseException:
            # Also on Ctrl-C: what was begun is removed; if that fails, the promise stays open.
            project.down(interrupted=True)
            ledger.done(promise)
            raise


def pull(image: str) -> None:
    """Makes sure that an image given by the user is here; RefusedError if it cannot be had."""
    if images.exists(image):
        return
    found, answer = ask("pull", "-q", image, timeout_s=limits.IMAGE_BUILD_TIMEOUT_S)
    if not found:
        raise RefusedError(
            f"options.image = {image!r}: is not here and cannot be pulled: {answer};"
            " leave it out to build from Debian's packages"
        )


def _start(
    project: Project, spec: BackendSpec, workers: int, run_dir: Path
) -> tuple[Ports, list[PeerLink]]:
    """Brings the project up: proxies between the nodes first, so that no server ever dials a peer
    in vain; tries other ports if somebody was quicker."""
    files = list(project.files)
    for attempt in range(1, PORT_TRIES_MAX + 1):
        ports = Ports(free_range(Ports(0, spec, workers).count), spec, workers)
        project.env["LOCKHAVOC_PORT_TOXIPROXY"] = str(ports.api)
        for node in spec.node_names:
            project.env[f"LOCKHAVOC_PORT_{node.upper()}"] = str(ports.node(node))
        last = ports.links + ports.links_count - 1
        project.env["LOCKHAVOC_PORTS_LINKS"] = f"{ports.links}-{last}"
        if spec.has_peers:
            overlay_file = run_dir.resolve() / "nodes" / "ports.json"
            overlay_file.parent.mkdir(parents=True, exist_ok=True)
            overlay_file.write_text(json.dumps(published(ports), indent=2))
            project.files = [*files, overlay_file]
        try:
            peers: list[PeerLink] = []
            if spec.has_peers:
                project.up(TOXIPROXY, *map(net_of, spec.node_names))
                peers = populate_peers(ports, project.name)
            project.up()
        except ComposeError as error:
            if not error.port_taken or attempt == PORT_TRIES_MAX:
                raise
            project.down()
        else:
            return ports, peers
    raise AssertionError("the last attempt returns or raises")


def _assemble(
    project: Project,
    ports: Ports,
    peers: Sequence[PeerLink],
    ledger: Ledger,
    promise: int,
    clocks: Mapping[str, SkewFile],
) -> DockerCluster:
    spec, engine = ports.spec, Engine.connect()
    nets = map(net_of, spec.node_names) if spec.has_peers else ()
    proxies = {name: engine.find(project.name, name) for name in (TOXIPROXY, *nets)}
    containers = {name: engine.find(project.name, name) for name in spec.node_names}
    nodes = {
        node.name: DockerNode(
            node.name,
            family_for(spec, node),
            containers[node.name],
            port=ports.node(node.name),
            data=node.data,
            network=Namespace(
                proxies.get(net_of(node.name), containers[node.name]).id,
                project.env["LOCKHAVOC_TOXIPROXY_IMAGE"],
            ),
            clock=clocks.get(node.name),
            remake=_remake(project, engine, spec, node.name) if spec.emptied_env else None,
        )
        for node in spec.nodes
    }
    for node in spec.nodes:
        nodes[node.name].votes = node.votes
    api = ToxiproxyClient(f"http://127.0.0.1:{ports.api}")
    links: list[ProxyLink | PeerLink] = [*populate_clients(api, ports, project.name), *peers]
    check_links(links)
    await_formed(spec, nodes)
    facts = [node.facts() for node in nodes.values()]
    versions = {str(fact["server"]): str(fact["version"]) for fact in facts}
    versions |= {"toxiproxy": api.version(), "docker engine": engine.version()}
    return DockerCluster(
        spec,
        project,
        engine,
        nodes=nodes,
        links=links,
        proxies=proxies,
        versions=versions,
        ledger=ledger,
        promise=promise,
    )


def _remake(
    project: Project, engine: Engine, spec: BackendSpec, node: str
) -> Callable[[], Container]:
    """Has Compose make the container of a node anew, on the same volume and network."""

    def remake() -> Container:
        for variable, value in spec.emptied_env.items():
            project.env[f"{variable}_{node.upper()}"] = value
        project.run("up", "-d", "--no-deps", "--no-build", "--pull", "never", node)
        return engine.find(project.name, node)

    return remake
