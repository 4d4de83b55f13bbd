"""The Docker Engine through its SDK: pause, kill, start, state, logs.  The one file that has it.

    engine = Engine.connect()
    engine.find("lockhavoc-1a2b3c", "redis").state()      # ContainerState(running=True, ...)

Why the SDK here and the client for Compose: pause and unpause take 25 ms by SDK and 185 ms by
``docker compose pause``, and a fault must be as short as its window says.

Traps: the SDK knows DOCKER_HOST but not the client's contexts, so the context is asked for;
otherwise the two could speak to two Engines.  Containers are found by Compose's labels, never by
name, and kept by id, which outlives kill and start.
"""

from __future__ import annotations

import contextlib
import io
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import docker
import docker.errors
import msgspec
import requests

from compose.docker_here import endpoint
from compose.docker_undo import OWN_LABEL, PROJECT_LABEL
from compose.waiting import wait_until
from harness.core import limits
from harness.core.errors import HarnessError

SERVICE_LABEL = "com.docker.compose.service"
FREEZE_TRIES_MAX = 5
NOT_FROZEN = "unable to freeze"  # runc's words
LOG_BYTES_MAX = 64 << 20  # per container; its own logging driver stops at 20 MB


class ContainerState(msgspec.Struct, frozen=True):
    """As the Engine reports it.  started_at: changes with every start; pid: 0 when not running."""

    running: bool
    paused: bool
    started_at: str
    pid: int
    exit_code: int
    oom_killed: bool


@contextmanager
def _engine_errors(what: str) -> Iterator[None]:
    try:
        yield
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise HarnessError(f"Docker Engine: {what}: {error}") from error


class _NotFrozenError(HarnessError):
    """The Engine could not freeze a container this time."""


class Container:
    """One container by id.  Every method raises HarnessError if the Engine refuses."""

    def __init__(self, inner: Any, service: str) -> None:
        self._inner = inner
        self.id: str = inner.id
        self.service = service

    def state(self) -> ContainerState:
        with _engine_errors(f"inspect {self.service}"):
            self._inner.reload()
        state = self._inner.attrs["State"]
        return ContainerState(
            running=bool(state["Running"]),
            paused=bool(state["Paused"]),
            started_at=state["StartedAt"],
            pid=int(state["Pid"]),
            exit_code=int(state["ExitCode"]),
            oom_killed=bool(state["OOMKilled"]),
        )

    def pause(self) -> None:
        """Freezes it; does nothing if it is paused already."""
        # On a busy machine runc gives up half-way and thaws what it had frozen: ask again.
        for _ in range(FREEZE_TRIES_MAX - 1):
            with contextlib.suppress(_NotFrozenError):
                return self._freeze()
        return self._freeze()

    def _freeze(self) -> None:
        try:
            self._unless(lambda state: state.paused, "pause", self._inner.pause)
        except HarnessError as error:
            if NOT_FROZEN in str(error):
                raise _NotFrozenError(str(error)) from error
            raise

    def unpause(self) -> None:
        """Thaws it; does nothing if it is not paused."""
        self._unless(lambda state: not state.paused, "unpause", self._inner.unpause)

    def kill(self) -> None:
        """SIGKILL; returns when it is dead.  Does nothing if it is dead already."""
        self._unless(lambda state: not state.running, "kill", self._inner.kill)
        if not wait_until(lambda: not self.state().running, timeout_s=limits.ENGINE_TIMEOUT_S):
            raise HarnessError(
                f"container {self.service} lives {limits.ENGINE_TIMEOUT_S} s after SIGKILL"
            )

    def start(self) -> None:
        """Starts it; does nothing if it runs already."""
        self._unless(lambda state: state.running, "start", self._inner.start)

    def empty(self, path: str, helper: str) -> None:
        """Empties a folder that is a volume of this (dead) container, by another one of the image
        ``helper``: its own may have no such program."""
        attrs = self._inner.attrs
        labels = {
            key: value
            for key, value in attrs["Config"]["Labels"].items()
            if key in (PROJECT_LABEL, OWN_LABEL)
        }
        # The helper carries the project's labels, so that the undo of the project finds it too.
        with _engine_errors(f"empty {path} of {self.service}"):
            self._inner.client.containers.run(
                helper,
                ["-mindepth", "1", "-delete"],
                entrypoint=["find", path],
                volumes_from=[self.id],
                user="0",
                network_mode="none",
                labels=labels,
                remove=True,
            )

    def leave_file(self, folder: str, name: str) -> None:
        """Puts an empty file into a folder of this container."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.addfile(tarfile.TarInfo(name))
        with _engine_errors(f"leave a file in {folder} of {self.service}"):
            self._inner.put_archive(folder, archive.getvalue())

    def has_file(self, path: str) -> bool:
        """True if the container has that file or folder now."""
        with _engine_errors(f"look for {path} in {self.service}"):
            try:
                chunks, _ = self._inner.get_archive(path)
            except docker.errors.NotFound:
                return False
            chunks.close()
        return True

    def logs(self) -> bytes:
        """Its output (both streams, with the Engine's time stamps), the newest LOG_BYTES_MAX."""
        with _engine_errors(f"logs of {self.service}"):
            text: bytes = self._inner.logs(stdout=True, stderr=True, timestamps=True)
        return text[-LOG_BYTES_MAX:]

    def _unless(
        self, reached: Callable[[ContainerState], bool], what: str, act: Callable[[], Any]
    ) -> None:
        if reached(self.state()):
            return
        try:
            act()
        except (docker.errors.DockerException, requests.RequestException) as error:
            # Another process (heal) may have been quicker: only the state read back decides.
            if not reached(self.state()):
                raise HarnessError(f"Docker Engine: {what} {self.service}: {error}") from error


class Engine:
    """A connection to one Engine on this machine."""

    def __init__(self, client: Any, host: str) -> None:
        self._client = client
        self.host = host

    @classmethod
    def connect(cls, *, timeout_s: float = limits.ENGINE_TIMEOUT_S) -> Engine:
        """Raises HarnessError if no Engine answers within ``timeout_s``."""
        host = endpoint()
        if not host.startswith("unix://"):
            raise HarnessError(
                f"Docker Engine at {host}: must be on this machine (unix://…), since ports are"
                " published on 127.0.0.1; unset DOCKER_HOST or choose another docker context"
            )
        with _engine_errors(f"connect to {host}"):
            client = docker.DockerClient(base_url=host, timeout=timeout_s, version="auto")
        return cls(client, host)

    def version(self) -> str:
        """Version of the Engine, e.g. "26.1.5"."""
        with _engine_errors("version"):
            return str(self._client.version()["Version"])

    def has_image(self, name: str) -> bool:
        with _engine_errors(f"image {name}"):
            try:
                self._client.images.get(name)
            except docker.errors.ImageNotFound:
                return False
        return True

    def find(self, project: str, service: str) -> Container:
        """The one container of a service; HarnessError if there is none or more."""
        labels = [f"{PROJECT_LABEL}={project}", f"{SERVICE_LABEL}={service}"]
        with _engine_errors(f"list containers of {project}"):
            found = self._client.containers.list(all=True, filters={"label": labels})
        if len(found) != 1:
            raise HarnessError(
                f"project {project}: {len(found)} containers of service {service!r}, wanted 1"
            )
        return Container(found[0], service)

    def close(self) -> None:
        self._client.close()
