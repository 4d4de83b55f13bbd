"""Two scenarios of etcd's book go through the whole pipeline, one in each runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from compose.docker_runtime import DockerRuntime
from harness.plan import draw
from harness.run import execute
from harness.scenario import load
from tests.compose.local import ROOT, need

pytestmark = pytest.mark.live

BOOK = ROOT / "scenarios" / "etcd"


def run(name: str, runtime: str, store: Path) -> None:
    path = BOOK / f"{name}.toml"
    scenario = load(path)
    report = execute(
        scenario, draw(scenario, 1), source=path.read_text(), runtime=runtime, store_dir=store,
        argv=[], replay=[], progress=lambda _: None,
    )  # fmt: skip
    assert report.verdict == "as-claimed", report.says
    assert report.exit_code == 0


def test_a_waiter_that_does_not_look_is_found_out(tmp_path: Path) -> None:
    """What Jepsen found in etcd 3.4.3, with the canary that is made like it."""
    need("etcd3")
    run("waiter-pause-unchecked", "process", tmp_path)


@pytest.mark.docker
def test_a_leader_that_was_cut_off_grants_nothing(tmp_path: Path) -> None:
    reason = DockerRuntime().can("etcd3")
    if reason:
        pytest.skip(reason)
    run("leader-partitioned", "docker", tmp_path)
