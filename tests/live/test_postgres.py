"""One scenario on each of PostgreSQL's backends goes through the whole pipeline, in containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from compose.docker_runtime import DockerRuntime
from harness.core.result import Valid
from harness.plan import draw
from harness.run import execute
from harness.scenario import load
from tests.compose.local import ROOT

pytestmark = [pytest.mark.live, pytest.mark.docker]

BOOK = ROOT / "scenarios" / "postgres"


@pytest.mark.parametrize(
    ("backend", "name", "broken"),
    [
        ("postgres1", "backend-kill", {"exclusion"}),  # lost in silence: not the service's fault
        ("postgres-ha", "failover", {"exclusion"}),
        ("postgres-pgbouncer", "pooled-transactions", {"exclusion", "lease"}),
    ],
)
def test_as_claimed(backend: str, name: str, broken: set[str], tmp_path: Path) -> None:
    reason = DockerRuntime().can(backend)
    if reason:
        pytest.skip(reason)
    path = BOOK / f"{name}.toml"
    scenario = load(path)
    assert scenario.backend.name == backend
    report = execute(
        scenario, draw(scenario, 1), source=path.read_text(), runtime="docker", store_dir=tmp_path,
        argv=[], replay=[], progress=lambda _: None,
    )  # fmt: skip
    assert report.verdict == "as-claimed", report.says
    found = {r.checker for r in report.results if r.valid is Valid.FALSE and r.safety}
    assert broken <= found
    assert ("lease" in found) == ("lease" in broken)
    assert report.versions["client psycopg"]
