"""A real HTTP server on loopback whose answers the test chooses."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class HttpServer:
    """``answer(handler, body)`` writes whatever it likes; what was asked is kept."""

    def __init__(self, answer: Callable[[BaseHTTPRequestHandler, bytes], None]) -> None:
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.stopping = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.asked.append((self.path, dict(self.headers), json.loads(body)))
                with contextlib.suppress(OSError):  # the client may have gone
                    answer(self, body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def stop(self) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextlib.contextmanager
def http_server(answer: Callable[[BaseHTTPRequestHandler, bytes], None]) -> Iterator[HttpServer]:
    server = HttpServer(answer)
    try:
        yield server
    finally:
        server.stop()


def reply(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"") -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
