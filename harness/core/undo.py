"""Undo steps as plain data, so that any process can carry them out, even after a crash.

A step is a JSON object with the field ``do``.  Every step is idempotent and says nothing when
there is nothing to undo: the process is gone, the proxy is gone, the directory is gone.

Trap: a pid may be reused.  ``signal`` and ``kill`` steps therefore carry the start time of the
process (field 22 of /proc/PID/stat) and leave a process with another start time alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal as signals
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.core import limits
from harness.core.errors import HarnessError

Step = dict[str, Any]


def process_start_ticks(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot (proc(5), stat field 22), or None."""
    fields = _stat_fields(pid)
    return None if fields is None else int(fields[19])


def process_state(pid: int) -> str | None:
    """One letter as in ps (R, S, D, T = stopped, Z = zombie), or None if there is none."""
    fields = _stat_fields(pid)
    return None if fields is None else fields[0]


def process_name(pid: int) -> str | None:
    """What the process calls itself (proc(5), comm), or None if there is none."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None


def process_tree(pid: int) -> list[int]:
    """The process and all that descend from it, itself first; of what it was if it is gone."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        fields = _stat_fields(int(entry.name)) if entry.name.isdigit() else None
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for parent in found:  # grows while it is walked
        found += children.get(parent, ())
    return found


def catches_signal(pid: int, number: int) -> bool:
    """True if the process lives and has a handler for this signal (proc(5), status, SigCgt)."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    caught = next((line.split()[1] for line in text.splitlines() if line.startswith("SigCgt")), "0")
    return bool(int(caught, 16) >> (number - 1) & 1)


def _stat_fields(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name stands in parentheses and may itself contain spaces and parentheses.
    return text.rpartition(")")[2].split()


def signal_step(pid: int, name: str = "CONT", *, tree: bool = False) -> Step:
    """Sends a signal to one process, or to all that descend from it, too."""
    step = {"do": "signal", "pid": pid, "start": process_start_ticks(pid), "signal": name}
    return step | {"tree": True} if tree else step


def kill_step(pid: int, *, group: bool = False) -> Step:
    """Kills a process (or its whole process group) with SIGKILL."""
    return {"do": "kill", "pid": pid, "start": process_start_ticks(pid), "group": group}


MARK_VARIABLE = "LOCKHAVOC_MARK"


def kill_marked_step(mark: str) -> Step:
    """Kills every process whose environment holds ``LOCKHAVOC_MARK=<mark>``, and its children.

    It can be promised *before* the process exists, so that no crash of the harness falls into the
    window between spawning and writing down the pid.
    """
    return {"do": "kill-marked", "mark": mark}


def http_step(method: str, url: str, body: Any = None, *, wait_ms: int = 0) -> Step:
    """Calls a local HTTP API; 404 and a server that is gone count as done, one that does not
    answer does not.  wait_ms: before the call, for what the step before it set going."""
    return {"do": "http", "method": method, "url": url, "body": body, "wait_ms": wait_ms}


def resp_step(host: str, port: int, words: Sequence[str], *, run_id: str) -> Step:
    """Sends one command to a server that speaks Redis' protocol, if it is still the same start.

    A port may come to another server: one with another ``run_id`` is left alone.
    """
    return {"do": "resp", "host": host, "port": port, "words": list(words), "run_id": run_id}


def true_time_step(path: str) -> Step:
    """Gives the processes that obey a clock file (skew.py) the true time again."""
    return {"do": "true-time", "path": path}


def argv_step(argv: list[str], *, env: dict[str, str] | None = None) -> Step:
    """Runs a command (``docker compose down`` and the like); it must be idempotent."""
    return {"do": "argv", "argv": argv, "env": env or {}}


def remove_step(path: str) -> Step:
    """Removes a directory tree."""
    return {"do": "remove", "path": path}


def perform(step: Step) -> str:
    """Carries out one step and returns one line that says what was done.

    Raises HarnessError with the reason when the step could not be done and should have been.
    """
    action = _ACTIONS.get(step.get("do", ""))
    if action is None:
        raise HarnessError(f"undo step of unknown kind: {json.dumps(step)}")
    return action(step)


def _same_process(step: Step) -> bool:
    start = process_start_ticks(step["pid"])
    return start is not None and (step.get("start") is None or step["start"] == start)


def _signal(step: Step) -> str:
    pid = step["pid"]
    if not _same_process(step):
        return f"process {pid} is gone"
    for each in process_tree(pid) if step.get("tree") else [pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, getattr(signals, f"SIG{step['signal']}"))
    return f"sent SIG{step['signal']} to process {pid}"


def _kill(step: Step) -> str:
    pid = step["pid"]
    if not _same_process(step):
        return f"process {pid} is gone"
    with contextlib.suppress(ProcessLookupError):
        if step.get("group"):
            os.killpg(pid, signals.SIGKILL)
        else:
            os.kill(pid, signals.SIGKILL)
    deadline = time.monotonic() + limits.WORKER_STOP_TIMEOUT_S
    while time.monotonic() < deadline:
        if not _same_process(step) or process_state(pid) == "Z":
            return f"killed process {pid}"
        time.sleep(0.005)
    raise HarnessError(f"process {pid} did not die within {limits.WORKER_STOP_TIMEOUT_S} s")


def marked_processes(mark: str) -> list[int]:
    """Pids of live processes of this user that carry the mark in their environment."""
    needle = f"{MARK_VARIABLE}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:  # gone meanwhile, or not ours to read
            continue
        if needle in environment.split(b"\0") and process_state(int(entry.name)) != "Z":
            found.append(int(entry.name))
    return found


def _kill_marked(step: Step) -> str:
    # A killed process may just have forked, so look again until nobody is left.
    for _ in range(5):
        pids = marked_processes(step["mark"])
        if not pids:
            break
        # A server may overwrite the environment of its children (PostgreSQL's titles), and a
        # stopped one would outlive its parent.
        for pid in {each for marked in pids for each in process_tree(marked)}:
            _kill(kill_step(pid))
    else:
        raise HarnessError(f"processes marked {step['mark']} keep coming back: {pids}")
    return f"no process marked {step['mark']} is left"


def _http(step: Step) -> str:
    method, url = step["method"], step["url"]
    time.sleep(step.get("wait_ms", 0) / 1000)
    body = None if step.get("body") is None else json.dumps(step["body"]).encode()
    if not url.startswith(("http://127.0.0.1:", "http://localhost:")):
        raise HarnessError(f"undo step calls {url!r}, which is not on loopback")
    request = urllib.request.Request(url, data=body, method=method)  # noqa: S310 - checked above
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=limits.HTTP_TIMEOUT_S):
            return f"{method} {url}"
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return f"{method} {url}: nothing there"
        raise HarnessError(f"{method} {url} answered {error.code}") from error
    except (urllib.error.URLError, OSError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, ConnectionError):  # refused or cut: nobody is there any more
            return f"{method} {url}: server is gone"
        raise HarnessError(f"{method} {url} got no answer: {reason}") from error


def _resp(step: Step) -> str:
    host, port, words = step["host"], step["port"], step["words"]
    if host != "127.0.0.1":
        raise HarnessError(f"undo step calls {host}, which is not on loopback")
    what = f"{' '.join(words)[:80]} on port {port}"
    try:
        with socket.create_connection((host, port), limits.HTTP_TIMEOUT_S) as connection:
            info = _resp_ask(connection, ["INFO", "server"])
            if f"run_id:{step['run_id']}\r\n" not in info:
                return f"{what}: another server is there, left alone"
            reply = _resp_ask(connection, words)
    except ConnectionError:  # refused or cut: nobody is there any more
        return f"{what}: server is gone"
    except OSError as error:
        raise HarnessError(f"{what} got no answer: {error}") from error
    if reply.startswith("-"):
        raise HarnessError(f"{what} was answered with an error: {reply.strip()}")
    return what


def _resp_ask(connection: socket.socket, words: list[str]) -> str:
    """The whole reply as text: a line, or a bulk string with its head."""
    parts = [f"*{len(words)}\r\n"]
    parts += [f"${len(word.encode())}\r\n{word}\r\n" for word in words]
    connection.sendall("".join(parts).encode())
    data = b""
    while True:
        head, _, rest = data.partition(b"\r\n")
        size = int(head[1:]) + 2 if head[:1] == b"$" and b"\r\n" in data else 0
        if b"\r\n" in data and len(rest) >= size:
            return data.decode(errors="replace")
        more = connection.recv(65536)
        if not more:
            raise ConnectionResetError("closed by the server")
        data += more


def _argv(step: Step) -> str:
    argv = step["argv"]
    try:
        done = subprocess.run(
            argv,
            env={**os.environ, **step.get("env", {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limits.COMPOSE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{' '.join(argv)}: {error}") from error
    if done.returncode != 0:
        raise HarnessError(f"{' '.join(argv)} failed: {done.stderr.strip()[-500:]}")
    return " ".join(argv)


def _true_time(step: Step) -> str:
    path = Path(step["path"])
    try:
        with path.open("r+b") as file:
            # Offset and rate, each in place: the process has the file mapped.  The time at which
            # they were set may stay, since nothing is counted from it any more.
            file.seek(2 * 8)
            file.write(bytes(2 * 8))
    except FileNotFoundError:
        return f"clock file {path} is gone"
    except OSError as error:
        raise HarnessError(f"clock file {path}: {error.strerror}") from error
    return f"true time by {path}"


def _remove(step: Step) -> str:
    shutil.rmtree(step["path"], ignore_errors=True)
    if Path(step["path"]).exists():
        raise HarnessError(f"could not remove {step['path']}; remove it by hand")
    return f"removed {step['path']}"


_ACTIONS = {
    "signal": _signal,
    "kill": _kill,
    "kill-marked": _kill_marked,
    "http": _http,
    "resp": _resp,
    "true-time": _true_time,
    "argv": _argv,
    "remove": _remove,
}
