"""What this machine's Docker can do, asked through the client; needs no Python package.

    engine_reason()      # None, or why no Engine can be used here and what to do

Traps: the client has contexts, the SDK knows only DOCKER_HOST, so the endpoint is asked for once
and given to both · ports are published on 127.0.0.1 of the machine that the Engine is on, so an
Engine elsewhere is of no use, even if it answers · a client without an Engine answers in
milliseconds, an address that swallows packets never: each question has a bound.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess

from harness.core import limits

COMPOSE_MIN = (2, 20)  # start_interval of health checks, --wait-timeout
ENGINE_FIX = "run `make engine` (Debian, Ubuntu; as root)"


def ask(*args: str, timeout_s: float = limits.ENGINE_ANSWER_TIMEOUT_S) -> tuple[bool, str]:
    """(True, standard output) of a docker call, or (False, why it failed)."""
    try:
        done = subprocess.run(
            ["docker", *args],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False, f"gave no answer within {timeout_s:g} s"
    except OSError as error:
        return False, str(error)
    if done.returncode != 0:
        return False, " ".join(done.stderr.split())[-300:]
    return True, done.stdout.strip()


def endpoint() -> str:
    """Address of the Engine that the docker client speaks to: DOCKER_HOST, else its context."""
    host = os.environ.get("DOCKER_HOST")
    if host:
        return host
    found, answer = ask("context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
    return answer if found and answer else "unix:///var/run/docker.sock"


def no_engine() -> str | None:
    """None if an Engine of this machine answers, else why not and the fix."""
    if shutil.which("docker") is None:
        return f"there is no docker client on PATH: {ENGINE_FIX}"
    host = endpoint()
    if not host.startswith("unix://"):
        return (
            f"the Docker Engine at {host} is not on this machine, and ports are published on"
            " 127.0.0.1: unset DOCKER_HOST or choose another docker context"
        )
    found, answer = ask("version", "--format", "{{.Server.Version}}")
    if found:
        return None
    if "ermission denied" in answer:
        return f"no permission for {host}: run as root or as a member of the socket's group"
    return f"no Docker Engine answers at {host} ({answer}): {ENGINE_FIX}"


def engine_reason() -> str | None:
    """Why no cluster can be brought up by the docker runtime here, with the fix; None if it can.

    Looks at the Engine, the Compose and buildx plugins and the Python package.
    """
    reason = no_engine()
    if reason:
        return reason
    plugin_s = limits.PLUGIN_ANSWER_TIMEOUT_S
    found, answer = ask("compose", "version", "--short", timeout_s=plugin_s)
    version = _version(answer) if found else None
    if version is None:
        return f"the docker client has no Compose v2 plugin ({answer}): {ENGINE_FIX}"
    if version < COMPOSE_MIN:
        have, need = (".".join(map(str, pair)) for pair in (version, COMPOSE_MIN))
        return f"Compose {have} is too old, {need} or newer is needed: {ENGINE_FIX}"
    found, answer = ask("buildx", "version", timeout_s=plugin_s)
    if not found:
        return (
            f"the docker client has no buildx plugin, which builds the images ({answer}):"
            f" {ENGINE_FIX}"
        )
    if importlib.util.find_spec("docker") is None:
        return "the Python package 'docker' is missing: pip install 'lockhavoc[docker]'"
    return None


def compose_version() -> tuple[int, int] | None:
    """(major, minor) of the Compose plugin, or None if there is none."""
    found, answer = ask("compose", "version", "--short")
    return _version(answer) if found else None


def _version(text: str) -> tuple[int, int] | None:
    match = re.match(r"v?(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None
