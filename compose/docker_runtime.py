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

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compose import docker_images as images
from compose import redis_probe
from compose.backends.spec import BackendSpec
from compose.docker_clock import overlay
from compose.docker_compose import FILES, ComposeError, Project, undo_steps
from compose.docker_engine import Container, Engine
from compose.docker_here import ask, engine_reason
from compose.docker_nodes import DockerNode
from compose.docker_ports import free_range
from compose.links import ProxyLink
from compose.registry import BACKENDS
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
        project: Project,
        engine: Engine,
        *,
        nodes: Mapping[str, DockerNode],
        links: Sequence[ProxyLink],
        proxy: Container,
        versions: Mapping[str, str],
        ledger: Ledger,
        promise: int,
        no_primary: str = "",
    ) -> None:
        self.project = project
        self._no_primary = no_primary
        self.nodes: Mapping[str, Node] = dict(nodes)
        self.links = tuple(links)
        self.versions = dict(versions)
        self._engine, self._proxy = engine, proxy
        self._containers = {name: node.container for name, node in nodes.items()}
        self._ledger, self._promise = ledger, promise

    def endpoints(self, worker: int) -> Sequence[Mapping[str, Any]]:
        own = [link for link in self.links if link.src == f"w{worker}"]
        if not own:
            raise HarnessError(f"worker {worker}: has no link; the cluster was made for fewer")
        return [{"name": link.dst, "host": link.host, "port": link.port} for link in own]

    def container_id(self, node: str) -> str:
        """Full id of a node's container, for what the docker client alone can do."""
        return self._containers[node].id

    def primary(self) -> str:
        """HarnessError if no node is one now, or if the backend can have none."""
        if self._no_primary:
            raise HarnessError(f"there is no primary: {self._no_primary}")
        for name, node in self.nodes.items():
            if node.facts()["role"] == "primary":
                return name
        raise HarnessError(f"no node of {', '.join(self.nodes)} says that it is the primary")

    def collect_logs(self, into: Path) -> None:
        """Also the proxy's log, as ``toxiproxy.log``."""
        into.mkdir(parents=True, exist_ok=True)
        for name, container in {**self._containers, TOXIPROXY: self._proxy}.items():
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
        """Answers within about 2 s; looks at Engine, plugins and images."""
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
        proxy_image = images.ensure(TOXIPROXY, release=TOXIPROXY_RELEASE)
        env = {
            "LOCKHAVOC_IMAGE": server_image,
            "LOCKHAVOC_TOXIPROXY_IMAGE": proxy_image,
            "LOCKHAVOC_SERVER_ARGS": shlex.join(spec.server_args(settled)),
        }
        file: Path | None = None
        clocks: Mapping[str, SkewFile] = {}
        if self.clock_shim is not None:
            file, clocks = overlay(spec.nodes, run_dir=run_dir, shim=self.clock_shim)
        name = f"lockhavoc-{os.urandom(6).hex()}"
        project = Project(name, FILES / spec.compose_file, env, overlay=file)
        promise = ledger.promise(undo_steps(project.name), why=f"containers of {project.name}")
        try:
            first = _start(project, spec, workers)
            return _assemble(project, spec, workers, first, ledger, promise, clocks)
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


def _start(project: Project, spec: BackendSpec, workers: int) -> int:
    """Brings the project up; returns the first of its ports: API, nodes, then links."""
    nodes = len(spec.nodes)
    for attempt in range(1, PORT_TRIES_MAX + 1):
        first = free_range(1 + nodes + nodes * workers)
        links = first + 1 + nodes
        project.env["LOCKHAVOC_PORT_TOXIPROXY"] = str(first)
        for offset, node in enumerate(spec.nodes, 1):
            project.env[f"LOCKHAVOC_PORT_{node.upper()}"] = str(first + offset)
        project.env["LOCKHAVOC_PORTS_LINKS"] = f"{links}-{links + nodes * workers - 1}"
        try:
            project.up(timeout_s=limits.COMPOSE_TIMEOUT_S)
        except ComposeError as error:
            if not error.port_taken or attempt == PORT_TRIES_MAX:
                raise
            project.down()
        else:
            return first
    raise AssertionError("the last attempt returns or raises")


def _assemble(
    project: Project,
    spec: BackendSpec,
    workers: int,
    first: int,
    ledger: Ledger,
    promise: int,
    clocks: Mapping[str, SkewFile],
) -> DockerCluster:
    engine = Engine.connect()
    nodes = {
        name: DockerNode(
            name, engine.find(project.name, name), port=first + offset, clock=clocks.get(name)
        )
        for offset, name in enumerate(spec.nodes, 1)
    }
    api = ToxiproxyClient(f"http://127.0.0.1:{first}")
    links = _make_links(api, project.name, spec, workers, first + 1 + len(nodes))
    facts = next(iter(nodes.values())).facts()
    versions = {
        str(facts["server"]): str(facts["version"]),
        "toxiproxy": api.version(),
        "docker engine": engine.version(),
    }
    return DockerCluster(
        project,
        engine,
        nodes=nodes,
        links=links,
        proxy=engine.find(project.name, TOXIPROXY),
        versions=versions,
        ledger=ledger,
        promise=promise,
        no_primary=spec.no_primary,
    )


def _make_links(
    api: ToxiproxyClient, project: str, spec: BackendSpec, workers: int, port: int
) -> list[ProxyLink]:
    """One proxy per worker and node; the ports count up from ``port``, worker by worker."""
    links = []
    wanted = []
    for worker in range(workers):
        for node in spec.nodes:
            # The proxy's name carries the run: a port may come to another run, its name cannot.
            name = f"w{worker}-{node}"
            proxy = f"{project}-{name}"
            wanted.append(
                {"name": proxy, "listen": f"0.0.0.0:{port}", "upstream": f"{node}:{spec.port}"}
            )
            links.append(
                ProxyLink(
                    api,
                    name=name,
                    src=f"w{worker}",
                    dst=node,
                    host="127.0.0.1",
                    port=port,
                    echo=redis_probe.probe,
                    proxy=proxy,
                )
            )
            port += 1
    api.populate(wanted)
    # Toxiproxy ignores what it does not understand, so read back what it made of it.
    there = api.proxies()
    missing = [proxy["name"] for proxy in wanted if not there.get(proxy["name"], {}).get("enabled")]
    if missing:
        raise HarnessError(f"Toxiproxy does not list the proxies {', '.join(missing)}")
    dead = [
        link.name for link in links if link.probe(limits.EVIDENCE_TIMEOUT_MS).outcome != "answered"
    ]
    if dead:
        raise HarnessError(f"no answer through the links {', '.join(dead)}")
    return links
