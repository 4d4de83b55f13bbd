"""A command of this machine, run to its end; what it said is in the error if it fails."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.core.commands import finished
from harness.core.errors import HarnessError


def run_to_end(
    argv: Sequence[str],
    what: str,
    *,
    env: Mapping[str, str],
    timeout_s: float,
    lines: int,
    cwd: Path | None = None,
) -> None:
    """Runs ``argv``; HarnessError that begins with ``what`` and ends with its last ``lines``."""
    try:
        done = finished(argv, timeout_s=timeout_s, env=env, cwd=cwd)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{what}: {error}") from error
    if done.returncode != 0:
        tail = "\n".join(done.stdout.strip().splitlines()[-lines:])
        raise HarnessError(f"{what} failed with exit code {done.returncode}:\n{tail}")
