"""``docker compose run --rm harness …``: the harness in a container beside its clusters."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from compose.docker_here import ask, engine_reason
from compose.docker_undo import PROJECT_LABEL, leftovers
from compose.waiting import wait_until

ROOT = Path(__file__).parents[2]
REASON = engine_reason()
pytestmark = [
    pytest.mark.live,
    pytest.mark.docker,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
]

SCENARIO = """
name = "in-a-container"

[claim]
verdict = "holds"
why = "the lease is longer than the pause"

[client]
library = "redis-py"

[workload]
workers = 2
ttl_ms = 5000
hold_ms = [5, 20]

[[faults]]
kind = "worker-pause"
target = "holder"
when = "held"
start_ms = 500
duration_ms = 300

[run]
time_ms = {time_ms}
recovery_ms = 4000
"""


@pytest.fixture(scope="module")
def image() -> str:
    argv = ["docker", "compose", "build", "-q", "harness"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return "lockhavoc/harness"


def harness(folder: Path, *args: str, name: str = "") -> list[str]:
    """argv of the harness in a container that sees ``folder`` under the same path."""
    named = ["--name", name] if name else []
    return ["docker", "compose", "run", "--rm", "-T", *named, "-v", f"{folder}:{folder}",
            "harness", *args]  # fmt: skip


def projects(run_dir: Path) -> set[str]:
    """Compose projects that the ledger of a run names."""
    found = set()
    for line in (run_dir / "faults.jsonl").read_text().splitlines():
        for step in json.loads(line).get("steps", []):
            if step["do"] == "argv" and step["argv"][-2] == "down":
                found.add(step["argv"][-1])
    return found


def assert_nothing_left(run_dir: Path) -> None:
    found = projects(run_dir)
    assert found
    for project in found:
        left = leftovers(f"{PROJECT_LABEL}={project}")
        assert not any(left.values()), left


def test_a_run_in_a_container(image: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO.format(time_ms=2000))
    argv = harness(tmp_path, "run", f"{tmp_path}/s.toml", "--store", f"{tmp_path}/store")
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    run_dir = tmp_path / "store" / "latest"
    assert json.loads((run_dir / "env.json").read_text())["runtime"] == "docker"
    assert (run_dir / "results.json").is_file()
    assert_nothing_left(run_dir.resolve())


def test_heal_after_the_container_was_killed(image: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO.format(time_ms=60_000))
    store, name = tmp_path / "store", f"lockhavoc-test-{tmp_path.name}"
    argv = harness(tmp_path, "run", f"{tmp_path}/s.toml", "--store", str(store), name=name)
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:
        history = store / "current" / "history.jsonl"
        began = wait_until(
            lambda: history.exists() and history.read_bytes().count(b"\n") > 20, timeout_s=200
        )
        ask("kill", name)
        assert run.stderr is not None
        assert began, run.stderr.read()
    run_dir = (store / "current").resolve()
    (project,) = projects(run_dir)
    assert len(leftovers(f"{PROJECT_LABEL}={project}")["container"]) == 2
    argv = harness(tmp_path, "heal", str(run_dir))
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_nothing_left(run_dir)
