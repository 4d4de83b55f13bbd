"""A worker: one client of the lock library under test, driven over stdin and stdout.

    PYTHON -u clients/worker/main.py --adapter clients/adapters/redis_py.py [--adapter-arg k=v]...

It is started by path with the target's own interpreter, so that the library under test lives in
its own environment.  Standard library only, Python 3.8 or later.

Traps: this file's folder and the project root are taken off ``sys.path`` again before the adapter
is loaded, so that a module called ``session`` or ``tests`` is the target's own; only the package
``clients`` stays importable (adapters need ``clients.worker.adapter``).  The worker ends at EOF on
stdin and at SIGTERM, with exit status 0; an adapter that cannot be loaded is exit status 3.
"""

from __future__ import annotations

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

if __name__ == "__main__":
    if os.path.abspath(sys.path[0] or ".") == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]
    sys.path.insert(0, ROOT)

import argparse  # noqa: E402 - the path had to be put right first
import contextlib  # noqa: E402
import importlib.util  # noqa: E402
import inspect  # noqa: E402
import json  # noqa: E402
import platform  # noqa: E402
import time  # noqa: E402
import traceback  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

from clients.worker import block  # noqa: E402
from clients.worker.adapter import powers  # noqa: E402
from clients.worker.channel import (  # noqa: E402
    READ_BYTES,
    Channel,
    LineBuffer,
    Stop,
    guard,
    take_stdio,
)
from clients.worker.session import BadRequest, Session, describe  # noqa: E402

if __name__ == "__main__":
    sys.path.remove(ROOT)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PROTOCOL = 1
EXIT_NO_ADAPTER = 3
METHODS = ("open", "acquire", "release", "renew", "believes", "close")
NEEDED = ("library", "distributions", "lease", "ERRORS", "open", "acquire", "release", "close")
now = time.monotonic_ns


def main(argv: Sequence[str]) -> None:
    """Runs until stdin ends or SIGTERM comes; never returns."""
    args = _parse(argv)
    channel = take_stdio()
    guard(channel.requests_fd)
    block.install()
    try:
        client = load(args.adapter, dict(args.adapter_arg))
        greeting = hello(client)
    except Exception as error:
        traceback.print_exc()
        channel.log(f"cannot load adapter {args.adapter}: {describe(error)}")
        _leave(EXIT_NO_ADAPTER)
    session = Session(client, channel.send)
    drive = _drive_async if _is_async(client) else _drive
    try:
        channel.send({"event": "hello", "value": greeting})
        drive(channel, session)
    except BrokenPipeError:
        pass  # the harness is gone; the operating system closes the library's connections
    except ValueError as error:
        traceback.print_exc()
        channel.log(f"cannot go on: {error}")
        _leave(1)
    _leave(0)


def load(path: str, args: dict[str, str]) -> Any:
    """Loads one adapter file and makes its client; ``args`` are passed by keyword.

    AttributeError names what the contract (clients/worker/adapter.py) asks for and it lacks.
    """
    name = "lockhavoc_adapter_" + os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    if not hasattr(module, "ADAPTER"):
        raise AttributeError("the file defines no ADAPTER")
    client = module.ADAPTER(**args)
    missing = [needed for needed in NEEDED if not hasattr(client, needed)]
    if missing:
        raise AttributeError(f"its ADAPTER has no {', '.join(missing)}")
    return client


def hello(client: Any) -> dict[str, Any]:
    """What the worker is and what its library can do (value of the event ``hello``)."""
    versions = {}
    if client.distributions:
        from importlib.metadata import version  # slow to import, so only where it is needed

        versions = {name: version(name) for name in client.distributions}
    return {
        "protocol": PROTOCOL,
        "python": platform.python_version(),
        "library": client.library,
        "versions": versions,
        "lease": {"kind": client.lease.kind, "ttl_ms": client.lease.ttl_ms},
        "powers": powers(client),
    }


def parse_line(line: bytes) -> dict[str, Any]:
    """A request object with a positive integer ``id``; BadRequest for anything else."""
    try:
        request = json.loads(line)
    except ValueError as error:
        raise BadRequest(f"not JSON ({error}): {line[:200]!r}") from error
    if not isinstance(request, dict) or type(request.get("id")) is not int or request["id"] < 1:
        raise BadRequest(f"not an object with a positive integer id: {line[:200]!r}")
    return request


def begin(channel: Channel, session: Session, line: bytes) -> Any:
    """(request, call, finish), or None if the line was answered already because it is wrong."""
    try:
        request = parse_line(line)
    except BadRequest as error:
        if line.strip():
            channel.log(f"ignored a line: {error}")
        return None
    try:
        return (request, *session.prepare(request))
    except BadRequest as error:
        at = now()
        reply = {"id": request["id"], "type": "fail", "error": str(error)}
        channel.send({**reply, "invoke": at, "complete": at})
        return None


def timed(call: Callable[[], Any]) -> tuple[tuple[int, int], Any, BaseException | None]:
    """Calls and stamps; whatever the library raises (SystemExit too) is an outcome."""
    invoke = now()
    try:
        result = call()
    except Stop:
        raise
    except BaseException as error:
        return (invoke, now()), None, error
    return (invoke, now()), result, None


def _drive(channel: Channel, session: Session) -> None:
    try:
        for line in channel.lines():
            begun = begin(channel, session, line)
            if begun is not None:
                request, call, finish = begun
                times, result, error = timed(call)
                channel.send(session.answer(request, times, result, error, finish))
                session.replied()
    except Stop:
        pass
    if session.is_open:
        _, _, error = timed(session.client.close)
        _report(error)


def _drive_async(channel: Channel, session: Session) -> None:
    import asyncio  # slow to import, so only where it is needed

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    with contextlib.suppress(Stop):
        loop.run_until_complete(_serve(channel, session))
    if session.is_open:
        _, _, error = loop.run_until_complete(_timed_async(session.client.close))
        _report(error)


async def _serve(channel: Channel, session: Session) -> None:
    import asyncio

    loop = asyncio.get_running_loop()
    lines = AsyncLines(channel, loop)
    while True:
        line = await lines.next()
        if line is None:
            return
        begun = begin(channel, session, line)
        if begun is None:
            continue
        request, call, finish = begun
        if request["do"] in ("write", "read"):
            # A blocking socket: on the loop it would hold up the library's own renewal.
            times, result, error = await loop.run_in_executor(None, timed, call)
        else:
            times, result, error = await _timed_async(call)
        channel.send(session.answer(request, times, result, error, finish))
        session.replied()


class AsyncLines:
    """Lines of a channel on an event loop; ``next`` gives None at EOF.

    asyncio's own pipe transport would do, but takes 256 KiB of fresh memory for every read, which
    costs three times as much as the rest of a request.
    """

    def __init__(self, channel: Channel, loop: Any) -> None:
        self._channel = channel
        self._loop = loop
        self._buffer = LineBuffer()
        self._whole: list[bytes] = []
        self._waiter: Any = None
        self._ended = False
        self._error: ValueError | None = None
        loop.add_reader(channel.requests_fd, self._readable)

    async def next(self) -> bytes | None:
        while not self._whole:
            if self._error is not None:
                raise self._error
            if self._ended:
                return None
            self._waiter = self._loop.create_future()
            await self._waiter
        return self._whole.pop(0)

    def _readable(self) -> None:
        data = os.read(self._channel.requests_fd, READ_BYTES)
        try:
            self._whole += self._buffer.split(data)
        except ValueError as error:  # raised here, the loop would log it and go on
            self._error = error
        if not data or self._error is not None:
            self._ended = True
            self._loop.remove_reader(self._channel.requests_fd)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def _timed_async(
    call: Callable[[], Any],
) -> tuple[tuple[int, int], Any, BaseException | None]:
    invoke = now()
    try:
        result = call()
        if inspect.isawaitable(result):
            result = await result
    except Stop:
        raise
    except BaseException as error:
        return (invoke, now()), None, error
    return (invoke, now()), result, None


def _is_async(client: Any) -> bool:
    return any(inspect.iscoroutinefunction(getattr(client, name, None)) for name in METHODS)


def _report(error: BaseException | None) -> None:
    if error is not None:
        print(f"close raised {describe(error)}", file=sys.stderr)


def _leave(status: int) -> None:
    """Ends at once: threads that the library left behind must not keep the process alive."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="worker", description="A client of a lock library.")
    parser.add_argument("--adapter", required=True, metavar="FILE", help="the adapter file")
    parser.add_argument(
        "--adapter-arg", action="append", default=[], metavar="K=V", type=_pair, help="for ADAPTER"
    )
    return parser.parse_args(argv)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=value")
    return name, value


if __name__ == "__main__":
    main(sys.argv[1:])
