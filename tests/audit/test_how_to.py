"""Every command of docs/how-to/audit.md is one, and does not end in a wrong usage."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import cli
from harness.core.errors import EXIT_AS_CLAIMED, EXIT_UNKNOWN, EXIT_VIOLATION
from tests.audit.test_live import SAMPLES, simulated

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "audit.md").read_text()


def prepared(folder: Path) -> None:
    """The files that the page speaks of."""
    faulty = (SAMPLES / "a-id-1-plain-delete.faulty.py").read_text()
    for name in ("app", "src", "deploy", "logs", "jepsen"):
        (folder / name).mkdir()
    for name in ("app/a.py", "src/a.py"):
        (folder / name).write_text(faulty)
    (folder / "redis.conf").write_text((SAMPLES / "a-cfg-1-redis.faulty.conf").read_text())
    for name in ("worker-1", "worker-2"):
        text = (SAMPLES / "a-log-1-two-holders.corrected.log").read_text()
        (folder / "logs" / f"{name}.log").write_text(text)
    toml = re.findall(r"```toml\n(\[fields\].*?)```", PAGE, re.S)
    (folder / "log-map.toml").write_text(toml[0])
    (folder / "jepsen" / "history.edn").write_text(
        "{:type :invoke, :f :acquire, :process 0, :time 1, :index 0}\n"
        "{:type :ok, :f :acquire, :process 0, :time 2, :index 1}\n"
    )
    run = simulated(folder, "recipe-redis-fenced", "holds", '["exclusion", "belief"]')
    (folder / "store" / "latest").unlink()
    (folder / "store" / "latest").symlink_to(run)


def test_all_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(tmp_path)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    audits = [line for line in lines if line.startswith("lockhavoc audit ")]
    assert len(audits) >= 15
    for line in audits:
        words = shlex.split(line.partition(" > ")[0])[1:]
        ended = CliRunner().invoke(cli, words, standalone_mode=False)
        assert ended.exception is None, f"{line}: {ended.exception}"
        assert ended.return_value in (EXIT_AS_CLAIMED, EXIT_VIOLATION, EXIT_UNKNOWN), line
