"""Images that the user names: laid out as official ones are, and some that do not fit.

The images are built here, since a registry may be out of reach: what is tested is entry point,
user, paths and the lack of a shell, not that somebody's tag can be pulled.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from compose import docker_images
from compose.backends.spec import BackendSpec
from compose.docker_fit import check
from compose.registry import BACKENDS
from harness.core.errors import RefusedError
from harness.core.protocols import Skewable
from harness.ledger import FileLedger
from nemesis.clockshim import build
from tests.nemesis.conformance import make
from tests.nemesis.worlds import TestWorld

pytestmark = [pytest.mark.live, pytest.mark.docker]
runtime = pytest.importorskip("compose.docker_runtime")
OFFICIAL = Path(__file__).parent / "official"


def like_official(server: str) -> str:
    """Tag of the image, made from the one that we build."""
    name = f"lockhavoc-test/official-like-{server}"
    argv = ["docker", "buildx", "build", "--load", "-q", "--tag", name, "--label=lockhavoc=1"]
    argv += ["--build-arg", f"SERVER={docker_images.ensure(server, release='trixie')}"]
    argv += ["-f", str(OFFICIAL / f"{server}.Dockerfile"), str(OFFICIAL)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return name


@pytest.fixture(scope="module", autouse=True)
def engine() -> None:
    reason = runtime.DockerRuntime().can("redis-single")
    if reason:
        pytest.skip(reason)


@pytest.mark.parametrize(("backend", "server"), [("redis-single", "redis"), ("etcd3", "etcd")])
def test_faults_on_an_official_image(
    tmp_path: Path, ledger: FileLedger, backend: str, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that need more of it: the clock shim, and a folder to be emptied."""
    monkeypatch.setenv(f"LOCKHAVOC_IMAGE_{server.upper()}", like_official(server))
    maker = runtime.DockerRuntime()
    if server == "redis" and not build.why_not():
        maker.clock_shim = build.ensure()
    cluster = maker.up(backend, {}, workers=1, run_dir=tmp_path, ledger=ledger)
    try:
        world = TestWorld(cluster, [], backend=backend, runtime="docker")
        (name, node), *_ = cluster.nodes.items()
        assert isinstance(node, Skewable)
        for kind in ["node-restart-empty", *(["clock-jump"] if maker.clock_shim else [])]:
            fault = make(kind)
            fault.inject(world, [name])
            evidence = fault.evidence(world, [name])
            fault.heal(world, [name])
            assert evidence.bit, (kind, evidence.says)
            assert fault.healed(world, [name]).bit, kind
    finally:
        cluster.down()


@pytest.mark.parametrize(
    ("backend", "lacks"),
    [
        ("redis-single", "cannot execute 'redis-server --version'"),
        ("etcd3", "cannot execute 'etcd --version'"),
        ("zookeeper3", "cannot execute 'java -version'"),
        ("postgres-ha", "cannot execute 'postgres --version'.*an official image lacks the scripts"),
    ],
)
def test_an_image_that_does_not_fit_is_refused_with_what_it_lacks(backend: str, lacks: str) -> None:
    spec: BackendSpec = BACKENDS.load(backend)
    with pytest.raises(RefusedError, match=rf"options\.image = 'debian:trixie-slim': {lacks}"):
        check(docker_images.base_image("trixie"), spec)


def test_an_image_that_cannot_load_the_clock_shim_is_refused(tmp_path: Path) -> None:
    not_a_library = tmp_path / "shim.so"
    not_a_library.write_text("not a library")
    image = docker_images.ensure("redis", release="trixie")
    check(image, BACKENDS.load("redis-single"))
    with pytest.raises(RefusedError, match="clock shim cannot be loaded"):
        check(image, BACKENDS.load("redis-single"), shim=not_a_library)
