"""What the harness knows of each lock library: data only, the library itself is never imported.

    library = LIBRARIES.load("redis-py")
    argv = library.command(environments.ensure(library))

Trap: ``powers`` is a promise; the worker's hello says what the adapter really has, and the
conformance test (tests/conformance/test_libraries.py) fails if the two differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

ROOM = Path(__file__).parent
WORKER = ROOM / "worker" / "main.py"


@dataclass(frozen=True, kw_only=True)
class Library:
    """One lock library and how it is run.

    adapter: path of the adapter file.  args: passed to the adapter as ``--adapter-arg k=v``, in
    other languages to the program as ``k=v``.
    requirements: hash-locked file of its environment.  imports: modules that must be importable
    in it (the probe of an interpreter that the user names).  lease: what ends a lock whose holder
    is silent.  powers: renew, believes, fenced, signals-loss.  fencing: where its tokens come
    from, "" if it has none.  backends: names of compose/registry.py.  loss_signal: how the library
    itself tells of a lost lock: none (one has to ask), flag or callback.  canary: the checker that
    must catch it, "" for a library that is believed right.  language: of its worker; in others than
    Python, ``adapter`` is the program's main file and ``requirements`` the file with the checksums
    (clients/toolchains.py).  extra: free for the owner of the
    registry line (the canaries keep their twin on ``sim`` there).
    """

    name: str
    adapter: Path
    requirements: Path
    imports: tuple[str, ...]
    backends: tuple[str, ...]
    args: Mapping[str, str] = field(default_factory=dict)
    lease: Literal["ttl", "session", "connection", "none"] = "ttl"
    powers: tuple[str, ...] = ()
    fencing: str = ""
    loss_signal: Literal["none", "flag", "callback"] = "none"
    canary: str = ""
    says: str = ""
    language: Literal["python", "go", "java"] = "python"
    extra: Mapping[str, str] = field(default_factory=dict)

    def command(self, python: Path | str) -> list[str]:
        """argv of a worker for this library under the interpreter ``python`` (in another language:
        of the program ``python``, which ``environments.ensure`` built)."""
        if self.language != "python":
            return [str(python), *(f"{name}={value}" for name, value in self.args.items())]
        argv = [str(python), "-u", str(WORKER), "--adapter", str(self.adapter)]
        for name, value in self.args.items():
            argv += ["--adapter-arg", f"{name}={value}"]
        return argv


def _redis(name: str, file: str, *, fencing: str = "", says: str) -> Library:
    return Library(
        name=name,
        adapter=ROOM / "adapters" / file,
        requirements=ROOM / "requirements" / "redis-py.txt",
        imports=("redis",),
        backends=("redis-single", "valkey-single"),
        powers=("renew", "believes", "fenced") if fencing else ("renew", "believes"),
        fencing=fencing,
        says=says,
    )


def _redlock(name: str, file: str, *, imports: str, powers: tuple[str, ...], says: str) -> Library:
    return Library(
        name=name,
        adapter=ROOM / "adapters" / file,
        requirements=ROOM / "requirements" / f"{name}.txt",
        imports=(imports,),
        backends=("redlock5", "redis-single", "valkey-single"),
        powers=powers,
        says=says,
    )


REDIS_PY = _redis("redis-py", "redis_py.py", says="redis.Redis().lock(), the synchronous Lock")
REDIS_PY_ASYNCIO = _redis(
    "redis-py-asyncio", "redis_py_asyncio.py", says="redis.asyncio.Redis().lock()"
)
REDIS_PY_FENCED = _redis(
    "redis-py-fenced",
    "redis_py_fenced.py",
    fencing="INCR of a counter per lock, in the script that grants",
    says="redis-py's Lock with a fencing token from the granting script",
)
REDLOCK_PY = _redlock(
    "redlock-py",
    "redlock_py.py",
    imports="redlock",
    powers=(),
    says="redlock.Redlock([...]).lock(), one server after another; abandoned, still used",
)
POTTERY = _redlock(
    "pottery",
    "pottery_redlock.py",
    imports="pottery",
    powers=("renew", "believes"),
    says="pottery.Redlock(masters=...), all servers at once",
)
