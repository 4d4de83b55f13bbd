"""Does an image that the user named fit the backend?  Asked before anything is started.

    check("redis:7", REDIS_SINGLE)        # RefusedError: what it lacks, what it is needed for

An official image has an entry point, a user and paths of its own; what a Compose file needs of it
is that some programs can be executed, so each is, in a container without network that is gone at
once.  Whether the server then starts is seen when it does; its log is in that error.

Traps: etcd's image has no shell, so nothing is asked by one.  The clock shim is a library for
glibc: under musl (Alpine) every program fails with it, and under an older glibc it is passed over
in silence but for a line on stderr.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from compose.backends.spec import BackendSpec
from compose.docker_clock import SHIM
from compose.docker_undo import OWN_LABEL
from harness.core import limits
from harness.core.commands import finished
from harness.core.errors import HarnessError, RefusedError

_WORDS_MAX = 200


def check(image: str, spec: BackendSpec, *, shim: Path | None = None) -> None:
    """RefusedError if a program of ``spec.programs`` cannot be executed in it, or (with ``shim``)
    not under the clock shim."""
    for program in spec.programs:
        code, said = _run(image, program)
        if code != 0:
            raise RefusedError(
                f"options.image = {image!r}: cannot execute {' '.join(program)!r} in it, which "
                f"backend {spec.name!r} needs ({said}); {spec.image_advice}"
            )
    if shim is None:
        return
    bind = ("--volume", f"{shim}:{SHIM}:ro", "--env", f"LD_PRELOAD={SHIM}")
    code, said = _run(image, spec.programs[0], *bind)
    if code != 0 or "LD_PRELOAD" in said or SHIM in said:
        raise RefusedError(
            f"options.image = {image!r}: the clock shim cannot be loaded in it ({said}), so faults "
            "on clocks cannot be done; take an image with a glibc as new as this machine's "
            "(Debian, not Alpine), or leave those faults out"
        )


def _run(image: str, program: Sequence[str], *options: str) -> tuple[int, str]:
    """(exit code, the end of what it said) of one program in a container of its own."""
    argv = ["docker", "run", "--rm", "--network=none", "--pull=never", f"--label={OWN_LABEL}=1"]
    argv += [*options, f"--entrypoint={program[0]}", image, *program[1:]]
    try:
        done = finished(argv, timeout_s=limits.ENGINE_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"cannot look into image {image!r}: {error}") from error
    return done.returncode, " ".join(done.stdout.split())[-_WORDS_MAX:]
