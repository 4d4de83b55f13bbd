"""The docker runtime without an Engine: files, tags, ports, reasons."""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from compose import docker_here, docker_images, docker_ports, docker_undo, doctor
from compose.backends.spec import BackendSpec
from compose.docker_compose import FILES
from compose.docker_links import net_of
from compose.docker_runtime import DockerRuntime
from compose.registry import BACKENDS
from compose.waiting import wait_until
from harness.core import limits
from harness.core.clock import NS_PER_S, VirtualClock
from harness.core.errors import HarnessError, RefusedError, UserError

ROOT = Path(__file__).parents[2]
needs_client = pytest.mark.skipif(shutil.which("docker") is None, reason="no docker client here")
needs_compose = pytest.mark.skipif(
    docker_here.compose_version() is None, reason="no docker client with Compose v2 here"
)


@pytest.fixture
def dead_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    host = f"unix://{tmp_path}/nobody.sock"
    monkeypatch.setenv("DOCKER_HOST", host)
    return host


def fake_docker(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A docker client that cannot be had otherwise: one that lacks its plugins."""
    path = folder / "docker"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_HOST", "unix:///var/run/docker.sock")


# --- files --------------------------------------------------------------------------------------


def config(file: Path, **env: str) -> dict[str, Any]:
    argv = ["docker", "compose", "-f", str(file), "config", "--format", "json"]
    done = subprocess.run(
        argv, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def check_no_way_round(spec: BackendSpec, services: dict[str, Any]) -> None:
    """Every peer's name is loopback, where its own Toxiproxy listens, and ports do not collide."""
    listening = [port for node in spec.nodes for port in node.peer_ports]
    assert len(listening) == len(set(listening))
    for node in spec.nodes:
        net = services[net_of(node.name)]
        peers = [peer for peer in spec.nodes if peer is not node and peer.peer_ports]
        hosts = dict(entry.split("=", 1) for entry in net.get("extra_hosts", []))
        assert hosts == {peer.name: "127.0.0.1" for peer in peers}
        assert set(net["networks"]["default"]["aliases"]) == {node.name, f"{node.name}.real"}
        assert services[node.name]["network_mode"] == f"service:{net_of(node.name)}"


@needs_compose
@pytest.mark.parametrize("name", BACKENDS.names())
def test_compose_file_keeps_the_rules(name: str) -> None:
    spec: BackendSpec = BACKENDS.load(name)
    parsed = config(FILES / spec.compose_file, LOCKHAVOC_PORTS_LINKS="21000-21003")
    nets = {net_of(node) for node in spec.node_names} if spec.has_peers else set()
    assert set(parsed["services"]) == {*spec.node_names, *nets, "toxiproxy"}
    for service in parsed["services"].values():
        assert service["restart"] == "no", "an automatic restart would undo a kill"
        assert service["init"] is True
        assert service["stop_grace_period"] == "1s"
        assert int(service["mem_limit"]) > 0
        assert service["logging"]["options"]["max-size"]
        assert service["healthcheck"]["test"]
        assert service["labels"]["lockhavoc"] == "1"
        assert {port["host_ip"] for port in service.get("ports", [])} <= {"127.0.0.1"}
    for node in spec.nodes:
        volumes = parsed["services"][node.name].get("volumes", [])
        wanted = [("volume", node.data)] if node.data else []
        assert [(volume["type"], volume["target"]) for volume in volumes] == wanted
    if spec.has_peers:
        check_no_way_round(spec, parsed["services"])
    links = [port["target"] for port in parsed["services"]["toxiproxy"]["ports"]]
    assert links == [8474, 21000, 21001, 21002, 21003]


@needs_compose
@pytest.mark.parametrize("name", BACKENDS.names())
def test_server_args_survive_the_compose_file(name: str) -> None:
    spec: BackendSpec = BACKENDS.load(name)
    args = list(spec.server_args(spec.settle({}, runtime="docker")))
    if not args:
        return  # its settings stand in the file
    parsed = config(FILES / spec.compose_file, LOCKHAVOC_SERVER_ARGS=shlex.join(args))
    command = parsed["services"][spec.nodes[0].name]["command"]
    assert command[-len(args) :] == args


@needs_compose
def test_compose_file_of_the_harness_is_valid() -> None:
    service = config(ROOT / "compose.yaml")["services"]["harness"]
    assert service["network_mode"] == "host"
    assert "/var/run/docker.sock" in {volume["target"] for volume in service["volumes"]}


@pytest.mark.parametrize("file", sorted(docker_images.IMAGES.glob("*/Dockerfile")))
def test_images_come_from_debian_and_stay_small(file: Path) -> None:
    text = file.read_text()
    bases = [line.split()[1] for line in text.splitlines() if line.startswith("FROM ")]
    assert bases
    assert all(base.startswith("debian:") for base in bases)
    assert text.count("apt-get update") == text.count("rm -rf /var/lib/apt/lists/*")
    assert "ADD " not in text
    assert "syntax=" not in text, "a build must need no registry"


# --- images, ports, waiting ---------------------------------------------------------------------


def test_tag_changes_with_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_images, "IMAGES", tmp_path)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "Dockerfile").write_text("FROM debian:trixie-slim\n")
    first = docker_images.tag("x", release="trixie")
    assert first.startswith("lockhavoc/x:trixie-")
    assert docker_images.tag("x", release="trixie") == first
    (tmp_path / "x" / "more").write_text("")
    second = docker_images.tag("x", release="trixie")
    (tmp_path / "x" / "more").write_text("changed")
    third = docker_images.tag("x", release="trixie")
    assert len({first, second, third}) == 3


def test_free_range_avoids_taken_ports() -> None:
    first = docker_ports.free_range(4, chance=random.Random(7))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first + 2))
        taken.listen()
        other = docker_ports.free_range(4, chance=random.Random(7))
        assert not set(range(other, other + 4)) & {first + 2}
        assert not docker_ports.is_free(first + 2)


def test_free_range_gives_up_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_ports, "is_free", lambda port: False)
    with pytest.raises(HarnessError, match="no 3 free ports in a row"):
        docker_ports.free_range(3)


def test_wait_until_is_bounded_and_asks_once_more_when_late() -> None:
    clock = VirtualClock()
    assert wait_until(lambda: clock.now() >= NS_PER_S, timeout_s=2, clock=clock)
    assert clock.now() == NS_PER_S
    assert not wait_until(lambda: False, timeout_s=2, clock=clock)
    assert clock.now() == 3 * NS_PER_S

    def slow() -> bool:
        clock.sleep_until(clock.now() + 10 * NS_PER_S)
        return clock.now() >= 23 * NS_PER_S

    assert wait_until(slow, timeout_s=5, clock=clock)


# --- reasons ------------------------------------------------------------------------------------


@needs_client
@pytest.mark.parametrize("name", BACKENDS.names())
def test_can_names_a_dead_engine_and_the_fix(name: str, dead_engine: str) -> None:
    begin = time.monotonic()
    reason = DockerRuntime().can(name)
    assert time.monotonic() - begin < 4  # 2 s on an idle machine
    assert reason is not None
    assert dead_engine in reason
    assert "make engine" in reason


@needs_client
def test_can_is_quick_when_the_engine_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent.sock"))
        silent.listen()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/silent.sock")
        begin = time.monotonic()
        reason = DockerRuntime().can("redis-single")
        assert time.monotonic() - begin < 2 * limits.ENGINE_ANSWER_TIMEOUT_S
    assert reason is not None
    assert "gave no answer within" in reason


@needs_client
def test_can_refuses_an_engine_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    reason = DockerRuntime().can("redis-single")
    assert reason is not None
    assert "not on this machine" in reason


def test_can_names_a_missing_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = DockerRuntime().can("redis-single")
    assert reason is not None
    assert "no docker client on PATH" in reason


def test_can_names_a_missing_compose_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_docker(tmp_path, '[ "$1" = version ] && echo 26.1.5 || exit 1', monkeypatch)
    reason = DockerRuntime().can("redis-single")
    assert reason is not None
    assert "no Compose v2 plugin" in reason


def test_can_names_an_old_compose_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_docker(tmp_path, "echo 2.17.3", monkeypatch)
    reason = DockerRuntime().can("redis-single")
    assert reason is not None
    assert "Compose 2.17 is too old" in reason


def test_can_names_a_base_image_that_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = 'case "$1 $2" in "version "*) echo 26.1 ;; "compose version") echo 2.26.1 ;; '
    script += '"buildx version") ;; *) exit 1 ;; esac'
    fake_docker(tmp_path, script, monkeypatch)
    reason = DockerRuntime().can("redis-single")
    assert reason is not None
    assert "debian:trixie-slim" in reason
    assert "make engine RELEASE=trixie" in reason


def test_up_is_refused_before_anything_starts(dead_engine: str, tmp_path: Path) -> None:
    class Untouched:
        def promise(self, *args: Any, **kwargs: Any) -> int:
            raise AssertionError("nothing may be promised: nothing starts")

        def done(self, promise: int) -> None:
            raise AssertionError

    runtime = DockerRuntime()
    with pytest.raises(RefusedError):
        runtime.up("redis-single", {}, workers=1, run_dir=tmp_path, ledger=Untouched())
    with pytest.raises(UserError, match="persistence = 'x'"):
        runtime.up(
            "redis-single", {"persistence": "x"}, workers=1, run_dir=tmp_path, ledger=Untouched()
        )


# --- choice and doctor --------------------------------------------------------------------------


def test_auto_takes_process_only_if_no_engine_answers(
    dead_engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_cannot", lambda runtime, backend: None)
    assert doctor.choose("auto", "redis-single") == "process"
    monkeypatch.setattr(docker_here, "no_engine", lambda: None)
    assert doctor.choose("auto", "redis-single") == "docker"


def test_auto_never_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_here, "no_engine", lambda: None)
    reasons = {"docker": "no Compose", "process": None}
    monkeypatch.setattr(doctor, "_cannot", lambda runtime, backend: reasons[runtime])
    with pytest.raises(RefusedError, match=r"no Compose .*an Engine answers.*--runtime process"):
        doctor.choose("auto", "redis-single")
    assert doctor.choose("process", "redis-single") == "process"


def test_an_explicit_docker_is_refused_without_an_engine(dead_engine: str) -> None:
    with pytest.raises(RefusedError, match="runtime 'docker' cannot run backend 'redis-single'"):
        doctor.choose("docker", "redis-single")


def test_sim_goes_with_sim_only() -> None:
    assert doctor.choose("auto", "sim") == "sim"
    assert doctor.choose("sim", "sim") == "sim"
    for requested, backend in [("sim", "redis-single"), ("docker", "sim"), ("process", "sim")]:
        with pytest.raises(RefusedError, match="only together"):
            doctor.choose(requested, backend)


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(UserError, match="did you mean 'redis-single'"):
        doctor.choose("auto", "redis-singel")
    with pytest.raises(UserError, match="did you mean 'docker'"):
        doctor.choose("doker", "redis-single")


def test_doctor_has_a_fix_for_everything_that_is_not_there(dead_engine: str) -> None:
    rows = doctor.rows()
    by_name = {row.what: row for row in rows}
    assert {"python", "docker engine", "toxiproxy-server", "runtime docker", "disk"} <= set(by_name)
    assert not by_name["docker engine"].ok
    assert not by_name["runtime docker"].ok
    assert all(row.fix for row in rows if not row.ok)
    assert all(row.says for row in rows)


# --- undo ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["down", "lockhavoc-x"], ["unpause", "4f5e"], ["list"]])
def test_undo_fails_aloud_without_an_engine(command: list[str], dead_engine: str) -> None:
    argv = [sys.executable, docker_undo.__file__, *command]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 255
    assert done.stderr.strip()


def test_undo_says_how_it_is_used() -> None:
    argv = [sys.executable, docker_undo.__file__, "tidy"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 254
    assert "usage" in done.stderr


def test_engine_script_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    script = ["sh", str(ROOT / "compose" / "engine.sh")]
    env = {**os.environ, "RELEASE": "wheezy"}
    done = subprocess.run(script, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 255
    assert "trixie or bookworm" in done.stderr
    env = {**os.environ, "DOCKER_HOST": "tcp://127.0.0.1:9"}
    done = subprocess.run(script, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 255
    assert "DOCKER_HOST" in done.stderr
