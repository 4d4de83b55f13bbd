"""A command of this machine, run to its end; what it said is in the error if it fails."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from harness.core.errors import HarnessError


def run_to_end(
    argv: Sequence[str],
    what: str,
    *,
    env: Mapping[str, str],
    timeout_s: float,
    lines: int,
    **how: Any,
) -> None:
    """Runs ``argv``; HarnessError that begins with ``what`` and ends with its last ``lines``.

    how: further arguments of ``subprocess.run`` (cwd).
    """
    try:
        done = subprocess.run(
            argv,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
            **how,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{what}: {error}") from error
    if done.returncode != 0:
        tail = "\n".join(done.stdout.strip().splitlines()[-lines:])
        raise HarnessError(f"{what} failed with exit code {done.returncode}:\n{tail}")
