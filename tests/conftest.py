"""Rules for all tests: live ones say why they are skipped, and may not be skipped in CI.

``LOCKHAVOC_REQUIRE_LIVE=process`` (or ``docker``, ``browser``, or several with commas) turns the
skip of a live test of that runtime, or of one that needs Chromium, into a failure: a green run must
not hide that nothing live was run.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

REQUIRED = {word.strip() for word in os.environ.get("LOCKHAVOC_REQUIRE_LIVE", "").split(",")}


def _required(item: pytest.Item) -> str | None:
    """The runtime whose live tests must run and that this test belongs to."""
    if item.get_closest_marker("browser"):
        return "browser" if "browser" in REQUIRED else None
    if item.get_closest_marker("docker"):
        return "docker" if "docker" in REQUIRED else None
    if item.get_closest_marker("live"):
        return "process" if "process" in REQUIRED else None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skipped live test fails when its runtime is required."""
    report = yield
    runtime = _required(item)
    if report.skipped and runtime and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = (
            f"skipped, but LOCKHAVOC_REQUIRE_LIVE demands the live tests of {runtime!r}: {reason}"
        )
    return report
