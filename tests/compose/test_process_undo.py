"""Undo steps of the process runtime where something stands in their way."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from harness.core import limits
from harness.core.errors import HarnessError
from harness.core.undo import http_step, perform, remove_step
from tests.compose.local import toxiproxy_up


@pytest.mark.live
def test_a_proxy_that_is_gone_is_undone_but_one_that_is_stuck_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HTTP_TIMEOUT_S", 0.3)
    with toxiproxy_up(tmp_path, f"test-{os.getpid()}-stuck") as (api, server):
        step = http_step("DELETE", f"{api.base_url}/proxies/w0-redis/toxics/latency-upstream")
        assert "nothing there" in perform(step)
        os.kill(server.pid, signal.SIGSTOP)
        with pytest.raises(HarnessError, match=r"got no answer: timed out"):
            perform(step)
        server.kill()
        assert "server is gone" in perform(step)


def test_what_could_not_be_removed_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    assert "removed" in perform(remove_step(str(folder)))
    assert "removed" in perform(remove_step(str(folder)))  # again: nothing there
    folder.write_text("a file in its place, which rmtree leaves alone")
    with pytest.raises(HarnessError, match=r"remove it by hand"):
        perform(remove_step(str(folder)))
