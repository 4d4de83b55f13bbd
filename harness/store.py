"""The directory of a run: ``store/<name>/<UTC time>/`` and what stands in it.

    scenario.toml  plan.json  env.json  history.jsonl  faults.jsonl  resource.jsonl
    results.json   report.html report.txt summary.md   junit.xml     nodes/   workers/

It is saved three times: before the first operation, after the last, after the analysis, so that
whatever happens in between loses nothing that was known before.  ``latest`` points to the newest
finished run, ``current`` to the newest begun one.  docs/results.md explains each file.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.core.errors import HarnessError, UserError
from harness.core.history import Header, History, Op
from harness.core.protocols import FaultWindow, ResourceRecord
from harness.ledger import read as read_ledger
from harness.stamps import tighten

HISTORY, PLAN, ENV, RESOURCE, RESULTS, REPORT = (
    "history.jsonl", "plan.json", "env.json", "resource.jsonl", "results.json", "report.html",
)  # fmt: skip

T = TypeVar("T")


class Environment(msgspec.Struct, omit_defaults=True, kw_only=True):
    """env.json: where and with what a run was made, and what a later analysis must know."""

    started: str  # ISO 8601, UTC
    start_ns: int = 0  # CLOCK_MONOTONIC at time 0 of the history
    argv: list[str]
    replay: list[str]
    runtime: str
    versions: dict[str, str] = {}
    git: dict[str, Any] = {}
    host: dict[str, str] = {}
    python: str = ""
    client: dict[str, Any] = {}  # interpreter, packages and files of the library under test
    enforced_deadline: bool = False  # the client stops by itself when its lease is over
    has_lease: bool = True
    lease_kind: str = "ttl"  # ttl | session | connection | none
    failures: list[str] = []
    duration_ms: int = 0
    loose_stamps: int = 0


def create(store: Path, name: str) -> Path:
    """Makes the directory of a new run and points ``current`` at it."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3] + "Z"
    run_dir = store / name / stamp
    try:
        run_dir.mkdir(parents=True)
        for folder in ("nodes", "workers"):
            (run_dir / folder).mkdir()
    except OSError as error:
        raise HarnessError(
            f"{run_dir}: cannot be made: {error.strerror}; choose another place with --store"
        ) from error
    _point(store / "current", run_dir)
    _point(store / name / "current", run_dir)
    return run_dir


def finished(store: Path, run_dir: Path) -> None:
    """Points ``latest`` at a finished run."""
    _point(store / "latest", run_dir)
    _point(run_dir.parent / "latest", run_dir)


def _point(link: Path, target: Path) -> None:
    temporary = link.with_name(f".{link.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(os.path.relpath(target, link.parent))
    temporary.replace(link)


def write(path: Path, data: bytes | str) -> None:
    """Writes a file as a whole: other readers see the old content or the new, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise HarnessError(f"{path}: cannot be written: {error.strerror}") from error


def write_json(path: Path, value: Any) -> None:
    """Writes indented JSON."""
    write(path, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def write_lines(path: Path, values: Sequence[Any], *, header: Any = None) -> None:
    """Writes JSON lines, a header first if there is one."""
    encoder = msgspec.json.Encoder()
    head = b"" if header is None else encoder.encode(header) + b"\n"
    write(path, head + encoder.encode_lines(values))


def read_json(path: Path, type_: type[T]) -> T:
    """Reads one JSON document; UserError says what is wrong with it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=type_)
    except FileNotFoundError:
        raise UserError(f"{path}: missing; is {path.parent} the directory of a run?") from None
    except (OSError, msgspec.DecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error


def read_history(run_dir: Path) -> tuple[History, int]:
    """The history of a run and how many operations kept the harness' stamps.

    A journal that was never made final (the harness was killed) is tightened on the way; a torn
    last line is dropped and flagged.
    """
    path = run_dir / HISTORY
    header, ops, torn = _read_journal(path)
    ops, loose = tighten(ops)
    return History(ops, header, torn=torn), loose


def _read_journal(path: Path) -> tuple[Header, list[Op], bool]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    tail = lines.pop()
    decode = msgspec.json.Decoder(Op).decode
    header, ops = Header(), []
    for number, line in enumerate(lines, 1):
        try:
            if number == 1:
                header = msgspec.json.decode(line, type=Header)
            else:
                ops.append(decode(line))
        except msgspec.DecodeError as error:
            raise UserError(f"{path}, line {number}: not an operation: {error}") from error
    return header, ops, bool(tail)


def finish_history(run_dir: Path, header: Header, ops: list[Op]) -> tuple[History, int]:
    """Replaces the journal by the final history: workers' stamps, in order of time."""
    stamped = any(op.extra for op in ops)
    tight, loose = tighten(ops)
    if stamped:
        write_lines(run_dir / HISTORY, tight, header=header)
    return History(tight, header), loose


def read_faults(run_dir: Path) -> list[FaultWindow]:
    """The faults of a run, as its ledger last knew them."""
    latest: dict[int, FaultWindow] = {}
    for entry in read_ledger(run_dir):
        if entry.entry == "fault":
            fields = {k: v for k, v in entry.fault.items() if k != "phase"}
            window = msgspec.convert(fields, FaultWindow)
            latest[window.id] = window
    return [latest[identity] for identity in sorted(latest)]


def read_resource(run_dir: Path) -> list[ResourceRecord]:
    """What the protected resource recorded (empty if there was none)."""
    path = run_dir / RESOURCE
    if not path.exists():
        return []
    decode = msgspec.json.Decoder(ResourceRecord).decode
    return [decode(line) for line in path.read_bytes().splitlines()]


def describe_host() -> dict[str, str]:
    """Machine and interpreter, for env.json (no host name, no user)."""
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": str(os.cpu_count()),
    }


@cache
def describe_git(directory: Path) -> dict[str, Any]:
    """Head and dirtiness of the checkout a run was started in; empty outside of one."""

    def git(*words: str) -> str | None:
        argv = ["git", "-C", str(directory), *words]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=5, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    head = git("rev-parse", "HEAD")
    return {} if head is None else {"head": head, "dirty": bool(git("status", "--porcelain"))}


def environment(
    *, argv: Sequence[str], replay: Sequence[str], runtime: str, versions: Mapping[str, str]
) -> Environment:
    """A new env.json."""
    return Environment(
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
        argv=list(argv),
        replay=list(replay),
        runtime=runtime,
        versions=dict(versions),
        git=describe_git(Path.cwd()),
        host=describe_host(),
        python=sys.version.split()[0],
    )
