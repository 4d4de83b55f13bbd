"""``docker compose`` by subprocess: the client is the contract, a library would only wrap it.

    project = Project("lockhavoc-1a2b3c", [FILES / "redis-single.yaml"], {"RELEASE": "trixie"})
    project.up(timeout_s=60)
    project.down()

Traps: without ``-p`` two runs share one project and tear down each other · ``up --wait`` without
``--wait-timeout`` waits for ever for a container that is never healthy · the reason of a failure
stands in stderr and in the containers' logs, both gone after ``down``, so they are read before.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import compose.docker_undo as undo
from harness.core import limits
from harness.core.errors import HarnessError
from harness.core.undo import MARK_VARIABLE, Step, argv_step, kill_marked_step

FILES = Path(__file__).parent / "files"
TAIL_CHARS = 2_000


class ComposeError(HarnessError):
    """``docker compose`` failed; ``stderr`` is all that it said."""

    def __init__(self, message: str, stderr: str) -> None:
        super().__init__(message)
        self.stderr = stderr

    @property
    def port_taken(self) -> bool:
        """True if the Engine could not publish a port because somebody else has it."""
        return any(
            text in self.stderr for text in ("port is already allocated", "address already in use")
        )


def undo_steps(project: str) -> list[Step]:
    """Steps that remove all of a project from any process; promised before it is created."""
    # First the client, should it still be at work: it would go on making containers.
    return [
        kill_marked_step(project),
        argv_step([sys.executable, undo.__file__, "down", project]),
    ]


def unpause_step(container_id: str) -> Step:
    """Step that unpauses a container if it is there and paused."""
    return argv_step([sys.executable, undo.__file__, "unpause", container_id])


class Project:
    """One Compose project: a name, its files (later ones add to the first) and the environment
    that fills them in."""

    def __init__(self, name: str, files: Sequence[Path], env: Mapping[str, str]) -> None:
        self.name = name
        self.files = list(files)
        self.env = dict(env)

    def up(self, *services: str, timeout_s: float = limits.COMPOSE_TIMEOUT_S) -> None:
        """Creates and starts these services, or all; returns when their health checks pass.

        Raises ComposeError with the end of stderr and of the logs of what failed.
        """
        wait = ["--wait", "--wait-timeout", str(int(timeout_s))]
        try:
            argv = ["up", "-d", "--no-build", "--pull", "never", *wait, *services]
            self.run(*argv, timeout_s=timeout_s + 30)
        except ComposeError as error:
            if error.port_taken:
                raise
            raise ComposeError(f"{error}\n{self._last_words()}", error.stderr) from error

    def down(self, *, interrupted: bool = False) -> None:
        """Removes containers, networks and volumes and makes sure that nothing is left.

        interrupted: ``up`` was cut short, so the Engine may still be making something.
        """
        # A file that is gone or broken must not keep us from removing what it made.
        with contextlib.suppress(ComposeError):
            self.run("down", "-v", "--remove-orphans", "--timeout", "1")
        try:
            undo.remove_project(self.name, settle_s=undo.SETTLE_S if interrupted else 0.0)
        except undo.UndoError as error:
            raise HarnessError(str(error)) from error

    def run(self, *args: str, timeout_s: float = limits.COMPOSE_TIMEOUT_S) -> str:
        """Standard output of ``docker compose … args``; ComposeError if it fails."""
        files = [word for file in self.files for word in ("-f", str(file))]
        argv = ["docker", "compose", "-p", self.name, *files, *args]
        env = {**os.environ, "COMPOSE_ANSI": "never", **self.env, MARK_VARIABLE: self.name}
        try:
            code, out, err = _run(argv, env, timeout_s)
        except subprocess.TimeoutExpired as error:
            raise ComposeError(f"{' '.join(argv)}: took longer than {timeout_s} s", "") from error
        except OSError as error:
            raise ComposeError(f"{' '.join(argv)}: {error}", "") from error
        if code != 0:
            text = err.strip()
            raise ComposeError(f"docker compose {args[0]} failed: {text[-TAIL_CHARS:]}", text)
        return out

    def _last_words(self) -> str:
        try:
            return "logs of the containers:\n" + self.run("logs", "--no-color", "--tail", "20")
        except ComposeError as error:
            return f"and their logs could not be read: {error}"


def _run(argv: list[str], env: Mapping[str, str], timeout_s: float) -> tuple[int, str, str]:
    """Exit code, standard output and standard error.

    The client starts its plugin as a process of its own; both are in a session of theirs, so that
    Ctrl-C reaches only us, and we end both.
    """
    process = subprocess.Popen(
        argv,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, out, err
