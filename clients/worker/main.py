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
import importlib.util  # noqa: E402
import platform  # noqa: E402
import traceback  # noqa: E402
from functools import partial  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

from clients.worker import block, together, users  # noqa: E402
from clients.worker.adapter import powers  # noqa: E402
from clients.worker.channel import Channel, Stop, guard, take_stdio  # noqa: E402
from clients.worker.drive import drive, drive_async  # noqa: E402
from clients.worker.session import Session, describe  # noqa: E402

if __name__ == "__main__":
    sys.path.remove(ROOT)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PROTOCOL = 1
EXIT_NO_ADAPTER = 3
NEEDED = ("library", "distributions", "lease", "ERRORS", "open", "acquire", "release", "close")


def main(argv: Sequence[str]) -> None:
    """Runs until stdin ends or SIGTERM comes; never returns."""
    args = _parse(argv)
    channel = take_stdio()
    guard(channel.requests_fd)
    block.install()
    try:
        make, client = load(args.adapter, dict(args.adapter_arg))
        greeting = hello(client)
    except Exception as error:
        traceback.print_exc()
        channel.log(f"cannot load adapter {args.adapter}: {describe(error)}")
        _leave(EXIT_NO_ADAPTER)
    try:
        channel.send({"event": "hello", "value": greeting})
        _serve(channel, make, client)
    except (BrokenPipeError, Stop):
        pass  # the harness is gone; the operating system closes the library's connections
    except ValueError as error:
        traceback.print_exc()
        channel.log(f"cannot go on: {error}")
        _leave(1)
    _leave(0)


def _serve(channel: Channel, make: Callable[[], Any], client: Any) -> None:
    """One user of its own, or several of one client if the first ``open`` says so."""
    on_loop = users.is_async(client)
    sharing = together.asked(channel.peek())
    if sharing is not None and users.refusal(client, sharing, on_loop=on_loop) is None:
        together.serve(channel, make, client, sharing)
    else:
        (drive_async if on_loop else drive)(channel, Session(client, channel.send))


def load(path: str, args: dict[str, str]) -> tuple[Callable[[], Any], Any]:
    """Loads one adapter file: what makes its clients, with ``args`` by keyword, and the first.

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
    make = partial(module.ADAPTER, **args)
    client = make()
    missing = [needed for needed in NEEDED if not hasattr(client, needed)]
    if missing:
        raise AttributeError(f"its ADAPTER has no {', '.join(missing)}")
    return make, client


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
        **users.offers(client, on_loop=users.is_async(client)),
    }


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
