"""The process runtime: real servers as local processes on loopback, behind a real Toxiproxy.

    cluster = ProcessRuntime().up("redis-single", {}, workers=4, run_dir=run, ledger=ledger)
    cluster.endpoints(0)       # [{"name": "redis", "host": "127.0.0.1", "port": 21840}]
    cluster.down()

For machines without a Docker Engine, and for speed: it is up in a quarter of a second.  The
servers and the proxy are the same programs as in containers; what differs is that a pause is
SIGSTOP, and that the network between them is the loopback device.

Order of ``up``: promise (kill what carries the run's mark, remove its data) -> all nodes ->
toxiproxy-server -> one proxy per worker and node -> ask the proxy whether it has them all.
Whatever fails on the way, also Ctrl-C, takes down what is up already.

Traps: a port that was free may be taken a moment later, so a server that ends because of that is
started again at another.  Logs live in ``run_dir/nodes``, not with the data, so that they
outlive a crash and its ``heal``.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from compose.backends.spec import BackendSpec, Local, LocalPlace
from compose.binary import Binary
from compose.links import ProxyLink
from compose.primary import await_formed, find_primary
from compose.process_node import ProcessNode
from compose.process_ports import FreePorts, listens
from compose.process_server import EndedError, LocalServer
from compose.registry import BACKENDS, family_for
from compose.servers import find_toxiproxy
from compose.toxiproxy import ToxiproxyClient, ToxiproxyError
from harness.core import limits
from harness.core.errors import HarnessError, LockhavocError, RefusedError
from harness.core.protocols import Cluster, Ledger, Link, Node
from harness.core.undo import Step, kill_marked_step, perform, remove_step

_PORT_TRIES_MAX = 5  # a second collision in a row is bad luck, a fifth is something else
_IN_USE = re.compile(r"address already in use", re.IGNORECASE)
T = TypeVar("T")


class ProcessRuntime:
    """``protocols.Runtime`` with local processes."""

    name = "process"

    def __init__(self) -> None:
        self.clock_shim: Path | None = None  # protocols.ClockShimmed

    def can(self, backend: str) -> str | None:
        """None, or why not and the fix: no such backend, a binary is missing, not Linux."""
        if not sys.platform.startswith("linux"):
            return f"the process runtime reads /proc and this is {sys.platform}; use Docker"
        try:
            _local(BACKENDS.load(backend)).find()
            find_toxiproxy()
        except LockhavocError as error:
            return str(error)
        return None

    def up(
        self,
        backend: str,
        options: Mapping[str, Any],
        *,
        workers: int,
        run_dir: Path,
        ledger: Ledger,
    ) -> Cluster:
        """UserError for wrong options, RefusedError for a missing binary, HarnessError if a
        server does not come up."""
        spec: BackendSpec = BACKENDS.load(backend)
        settled = spec.settle(options, runtime=self.name)
        local, toxiproxy = _local(spec), find_toxiproxy()
        local.fetch()
        binaries = local.find()
        cluster = ProcessCluster(spec, run_dir.resolve(), ledger, clock_shim=self.clock_shim)
        try:
            cluster.start_nodes(settled, binaries)
            cluster.add_proxies(toxiproxy, workers)
        except BaseException as error:
            try:
                cluster.down()
            except HarnessError as second:
                error.add_note(str(second))
            raise
        return cluster


def _local(spec: BackendSpec) -> Local:
    if spec.local is None:
        raise RefusedError(
            f"backend {spec.name!r} does not run as local processes: "
            f"{spec.local_refused}; use --runtime docker"
        )
    return spec.local


class ProcessCluster:
    """``protocols.Cluster`` with local processes."""

    def __init__(
        self,
        spec: BackendSpec,
        run_dir: Path,
        ledger: Ledger,
        *,
        clock_shim: Path | None = None,
    ) -> None:
        self._nodes: dict[str, Node] = {}
        self._links: list[Link] = []
        self._versions: dict[str, str] = {}
        self.nodes: Mapping[str, Node] = self._nodes
        self.links: Sequence[Link] = self._links
        self.versions: Mapping[str, str] = self._versions
        self.api: ToxiproxyClient | None = None
        self._spec = spec
        self._run = f"lh{os.urandom(6).hex()}"  # mark of its processes, prefix of its proxies
        self._ports, self._clock_shim = FreePorts(), clock_shim
        self._work, self._logs = run_dir / "servers", run_dir / "nodes"
        self._local: dict[str, ProcessNode] = {}
        self._proxy: LocalServer | None = None
        self._ledger: Ledger | None = ledger
        self._promise = ledger.promise(self._undo(), why="servers of the process runtime")

    def _undo(self) -> list[Step]:
        return [kill_marked_step(self._run), remove_step(str(self._work))]

    def start_nodes(self, options: Mapping[str, str], binaries: Mapping[str, Binary]) -> None:
        """Starts all servers and waits until each is ready; all anew at other ports if one of
        them was just taken, since servers of a cluster know each other's."""
        for attempt in range(_PORT_TRIES_MAX):
            try:
                self._start_nodes(options, binaries)
                break
            except EndedError as error:
                if attempt == _PORT_TRIES_MAX - 1 or not _IN_USE.search(error.log_tail):
                    raise
                for node in self._local.values():
                    node.kill()
                shutil.rmtree(self._work)
        for name, node in self._local.items():
            facts = node.facts()
            self._nodes[name] = node
            self._versions[str(facts["server"])] = str(facts["version"])

    def _start_nodes(self, options: Mapping[str, str], binaries: Mapping[str, Binary]) -> None:
        local = _local(self._spec)
        place = LocalPlace(
            ports={
                name: {purpose: self._ports.take() for purpose in ("client", *local.ports)}
                for name in self._spec.node_names
            },
            data={name: self._work / name for name in self._spec.node_names},
            options=options,
            binaries=binaries,
        )
        self._local.clear()
        for node in self._spec.nodes:
            self._local[node.name] = ProcessNode(
                node.name,
                family_for(self._spec, node),
                local.program(node.name, place),
                port=place.ports[node.name]["client"],
                data=place.data[node.name],
                log=self._logs / f"{node.name}.log",
                mark=self._run,
                clock_shim=self._clock_shim,
            )
            self._local[node.name].votes = node.votes
            self._local[node.name].spawn()
        for started in self._local.values():
            started.await_ready()
        await_formed(self._spec, self._local)

    def add_proxies(self, binary: Binary, workers: int) -> None:
        """Starts toxiproxy-server and makes one proxy per worker and node that clients reach."""
        self.api = api = self._start_toxiproxy(binary)
        self._versions["toxiproxy"] = binary.version
        ways = [
            (worker, self._local[node.name])
            for worker in range(workers)
            for node in self._spec.nodes
            if node.clients
        ]
        wanted = [
            {"name": self._proxy_name(worker, node), "upstream": f"{node.host}:{node.port}"}
            for worker, node in ways
        ]
        self._populate(api, wanted)
        listed = api.proxies()
        for worker, node in ways:
            proxy = self._proxy_name(worker, node)
            host, _, port = str(listed[proxy]["listen"]).rpartition(":")
            link = ProxyLink(
                api,
                name=f"w{worker}-{node.name}",
                src=f"w{worker}",
                dst=node.name,
                host=host,
                port=int(port),
                echo=node.family.probe,
                proxy=proxy,
            )
            self._links.append(link)

    def _proxy_name(self, worker: int, node: ProcessNode) -> str:
        return f"{self._run}-w{worker}-{node.name}"

    def _start_toxiproxy(self, binary: Binary) -> ToxiproxyClient:
        def start(port: int) -> ToxiproxyClient:
            argv = [str(binary.path), "-host", "127.0.0.1", "-port", str(port)]
            # Its log of every connection would fill the disk in a long run.
            server = LocalServer(
                "toxiproxy",
                argv,
                mark=self._run,
                log=self._logs / "toxiproxy.log",
                cwd=self._work,
                env={"LOG_LEVEL": "warn"},
            )
            self._kill_proxy()
            self._proxy = server
            api = ToxiproxyClient(f"http://127.0.0.1:{port}")
            server.spawn()
            server.await_ready(
                lambda: _answers(server, api, port), timeout_s=limits.NODE_READY_TIMEOUT_S
            )
            return api

        return self._with_port(start)

    def _populate(self, api: ToxiproxyClient, wanted: Sequence[Mapping[str, str]]) -> None:
        for attempt in range(_PORT_TRIES_MAX):
            listens = [f"127.0.0.1:{self._ports.take()}" for _ in wanted]
            asked = [{**w, "listen": at} for w, at in zip(wanted, listens, strict=True)]
            try:
                api.populate(asked)
                break
            except ToxiproxyError as error:
                if attempt == _PORT_TRIES_MAX - 1 or not _IN_USE.search(str(error)):
                    raise
        listed = {
            (name, proxy["listen"], proxy["upstream"], proxy["enabled"], len(proxy["toxics"]))
            for name, proxy in api.proxies().items()
        }
        expected = {(w["name"], w["listen"], w["upstream"], True, 0) for w in asked}
        if listed != expected:
            raise HarnessError(
                "Toxiproxy does not list the proxies asked for; "
                f"missing: {sorted(expected - listed)}, unasked: {sorted(listed - expected)}"
            )

    def _with_port(self, start: Callable[[int], T]) -> T:
        """Calls ``start`` with a free port, again with another if that one was just taken."""
        for attempt in range(_PORT_TRIES_MAX):
            try:
                return start(self._ports.take())
            except EndedError as error:
                if attempt == _PORT_TRIES_MAX - 1 or not _IN_USE.search(error.log_tail):
                    raise
        raise AssertionError("unreachable")

    def endpoints(self, worker: int) -> Sequence[Mapping[str, Any]]:
        return [
            {"name": link.dst, "host": link.host, "port": link.port}
            | {"address": f"{self._local[link.dst].host}:{self._local[link.dst].port}"}
            for link in self.links
            if link.src == f"w{worker}"
        ]

    def primary(self) -> str:
        """HarnessError if no node that answers is a primary, or if the backend can have none."""
        return find_primary(self._spec, self.nodes)

    def collect_logs(self, into: Path) -> None:
        into.mkdir(parents=True, exist_ok=True)
        for log in sorted(self._logs.glob("*.log")):
            with contextlib.suppress(shutil.SameFileError):
                shutil.copyfile(log, into / log.name)

    def down(self) -> None:
        """May be called again; HarnessError names all that could not be removed."""
        failures = []
        for kill in [*(node.kill for node in self._local.values()), self._kill_proxy]:
            try:
                kill()
            except HarnessError as error:
                failures.append(str(error))
        for step in self._undo():
            try:
                perform(step)
            except HarnessError as error:
                failures.append(str(error))
        if self._work.exists():
            failures.append(f"{self._work} could not be removed")
        if failures:
            raise HarnessError("process runtime: " + "; ".join(failures))
        if self._ledger is not None:
            self._ledger.done(self._promise)
            self._ledger = None

    def _kill_proxy(self) -> None:
        if self._proxy is not None:
            self._proxy.kill()


def _answers(server: LocalServer, api: ToxiproxyClient, port: int) -> bool:
    """True if it is our server that answers at this port; EndedError if another has the port.

    toxiproxy-server does not end when its port is taken: it says so and stays, deaf.
    """
    if listens(server.pid, port):
        return bool(api.version())
    if _IN_USE.search(server.log_tail()):
        raise EndedError(f"port {port} of 127.0.0.1 is in use", server.log_tail())
    return False
