"""``python -m clients.resource``: runs the protected resource until it is stopped.

Prints one JSON line when it listens: {"event":"listening","host":...,"port":...,"pid":...,
"mode":...}.  Trap: with ``--stop-on-eof`` it also ends when its stdin does, so that it never
outlives a harness that was killed.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
from pathlib import Path

from clients.resource.server import HOST, Server
from clients.resource.store import MODES
from harness.core.errors import EXIT_HARNESS, UserError


def main() -> int:
    """Exit status: 0 stopped, 254 wrong use, 255 the server cannot go on (disk full, port)."""
    parser = argparse.ArgumentParser(prog="python -m clients.resource")
    parser.add_argument("--dir", type=Path, required=True, help="where its data live")
    parser.add_argument("--mode", choices=MODES, required=True)
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--stop-on-eof", action="store_true", help="end when stdin ends")
    args = parser.parse_args()
    lifeline = sys.stdin.fileno() if args.stop_on_eof else None
    try:
        server = Server(args.dir, args.mode, args.port, lifeline=lifeline)
        server.stop_on_signals()
        hello = {"event": "listening", "host": HOST, "port": server.port, "pid": os.getpid()}
        sys.stdout.write(json.dumps({**hello, "mode": args.mode}) + "\n")
        sys.stdout.flush()
        server.serve()
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except (OSError, sqlite3.Error) as error:
        sys.stderr.write(f"resource in {args.dir} cannot go on: {type(error).__name__}: {error}\n")
        return EXIT_HARNESS
    return 0


if __name__ == "__main__":
    sys.exit(main())
