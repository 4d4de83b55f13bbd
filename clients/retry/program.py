"""Runs an outside decider: JSON on stdin, JSON on stdout, and no way to outstay its time.

    ask = Program(["python", "decider.py"], timeout_s=2.0)
    ask(b'{"lock_name": ...}', 2.0)          # its stdout; DeciderFailed with the reason otherwise

The program leads a process group of its own, and whatever is left of the group is killed when it
is done, late, or too talkative; so a child that holds stdout open cannot keep anybody waiting.
Trap: a group may be signalled safely only while its leader is not reaped, so reaping comes last.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import IO

from harness.core.limits import RETRY_ANSWER_BYTES_MAX

ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ")
LOOK_AGAIN_S = 0.02  # how late the end of a program is seen that leaves its stdout to a child


class DeciderFailed(Exception):
    """The decider gave no answer at all; asking again would only cost time."""


class Program:
    """A command as decider; ``environment`` names the variables that it gets besides the usual."""

    def __init__(
        self, argv: Sequence[str], timeout_s: float = 5.0, environment: Sequence[str] = ()
    ) -> None:
        self.argv = list(argv)
        self.timeout_s = timeout_s
        self.environment = (*ENVIRONMENT, *environment)

    def __call__(self, request: bytes, most_s: float) -> bytes:
        """What the program wrote to stdout, within ``min(timeout_s, most_s)`` seconds."""
        limit_s = min(self.timeout_s, most_s)
        try:
            process = subprocess.Popen(
                self.argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={k: v for k, v in os.environ.items() if k in self.environment},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise DeciderFailed(f"cannot start {self.argv[:1]}: {error}") from error
        try:
            answer = _exchange(process, request, time.monotonic() + limit_s, limit_s)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    _there(pipe).close()
            process.wait()
        return answer


def _there(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _exchange(
    process: subprocess.Popen[bytes], request: bytes, deadline: float, limit_s: float
) -> bytes:
    stdin, stdout = _there(process.stdin), _there(process.stdout)
    answer = bytearray()
    with selectors.DefaultSelector() as selector:
        for pipe, event in ((stdin, selectors.EVENT_WRITE), (stdout, selectors.EVENT_READ)):
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, event)
        while True:
            ended = _exit_code(process)
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise DeciderFailed(f"no answer within {limit_s:.3g} s")
            ready = selector.select(0 if ended is not None else min(left_s, LOOK_AGAIN_S))
            for key, _ in ready:
                if key.fileobj is stdin:
                    request = _write(selector, stdin, request)
                elif not _read(selector, stdout, answer):
                    continue
            # Looked at before the last read, so nothing that it wrote can be missed.
            if ended is not None and not any(key.fileobj is stdout for key, _ in ready):
                break
    if ended:
        raise DeciderFailed(f"ended with exit status {ended}")
    return bytes(answer)


def _write(selector: selectors.BaseSelector, pipe: IO[bytes], request: bytes) -> bytes:
    try:
        request = request[os.write(pipe.fileno(), request) :]
    except BlockingIOError:
        return request
    except OSError:
        request = b""  # it does not want the rest; its answer counts
    if not request:
        selector.unregister(pipe)
        with contextlib.suppress(OSError):
            pipe.close()
    return request


def _read(selector: selectors.BaseSelector, pipe: IO[bytes], answer: bytearray) -> bool:
    chunk = os.read(pipe.fileno(), 1 << 16)
    answer += chunk
    if len(answer) > RETRY_ANSWER_BYTES_MAX:
        raise DeciderFailed(f"answered more than {RETRY_ANSWER_BYTES_MAX} bytes")
    if not chunk:
        selector.unregister(pipe)
    return bool(chunk)


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    """The exit status without reaping: negative for a signal, None while it runs."""
    state = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if state is None:
        return None
    return state.si_status if state.si_code == os.CLD_EXITED else -state.si_status
