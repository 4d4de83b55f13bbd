"""A command of this machine, run to its end, for the rooms that build or ask something.

    done = finished(["go", "version"], timeout_s=10)       # done.returncode, done.stdout
    said = built(["javac", ...], cwd=folder, env=env, timeout_s=900)    # HarnessError if it fails

Both kinds of output come as one text, since tools disagree on where errors go; stdin is empty.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.core.errors import HarnessError

_LINES_SHOWN = 12


def finished(
    argv: Sequence[str],
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """The command with its exit code and all that it said; env: None for ours.

    OSError if it cannot be started, subprocess.TimeoutExpired if it takes too long.
    """
    return subprocess.run(
        argv,
        cwd=cwd,
        env=None if env is None else dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=timeout_s,
        check=False,
    )


def built(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float, shown: int = 4
) -> str:
    """What a tool said that fetches or compiles; HarnessError with its last words if it fails.

    shown: how many words of the command tell which one it was.
    """
    done = finished(argv, timeout_s=timeout_s, env=env, cwd=cwd)
    if done.returncode != 0:
        said = "\n".join(f"  {line}" for line in done.stdout.strip().splitlines()[-_LINES_SHOWN:])
        raise HarnessError(
            f"exit status {done.returncode} of {' '.join(argv[:shown])}:\n{said}\n"
            "Fix what it says (network, proxy settings of the tool, disk) and try again"
        )
    return done.stdout
