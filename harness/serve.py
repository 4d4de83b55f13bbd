"""``lockhavoc serve``: the runs of a store in a browser, on this machine only.

    with Web(Path("store"), 0) as web:
        print(web.url)                       # http://127.0.0.1:41873/
        web.serve_forever()

It listens on 127.0.0.1 and nowhere else, answers GET and HEAD, and writes nothing.  A request must
name this very address as its host: else a page somewhere on the web could, by a name that it lets
point to 127.0.0.1, read what is stored here.

| address                     | page                                             |
|-----------------------------|--------------------------------------------------|
| /                           | runs, filtered by verdict, backend, library, fault, name |
| /campaign/NAME              | all runs of a scenario                           |
| /matrix                     | library by fault                                 |
| /compare?a=RUN&b=RUN        | two runs side by side                            |
| /run/NAME/STAMP/ and files  | the report and every file of a run               |
| /files/NAME/STAMP, /zip/... | list of the files, all of them as a zip          |
| /badge/NAME.svg             | the newest verdict                               |

Trap: files of a run hold strings of servers and workers.  Only report.html, which was made here and
has a policy of its own, is served as a page; everything else is plain text, JSON or a picture, with
sniffing forbidden.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qs, unquote, urlsplit

import click

from harness.core.errors import HarnessError, UserError
from harness.report import pages
from harness.report.badge import badge
from harness.store import REPORT
from harness.stored_runs import StoredRuns

HOST = "127.0.0.1"
_SPOOL_BYTES = 16 << 20  # a larger zip goes through a file
_TYPES = {".json": "application/json", ".svg": "image/svg+xml", ".xml": "application/xml"}
_HTML, _TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"
_ZIP = "application/zip"
_STRICT = "default-src 'none'; sandbox"


class Found(Exception):
    """Ends a request with a page or a file."""

    def __init__(self, body: bytes, kind: str, *, status: int = HTTPStatus.OK) -> None:
        super().__init__(kind)
        self.body, self.kind, self.status = body, kind, status


class Web(ThreadingHTTPServer):
    """The server of one store."""

    daemon_threads = True

    def __init__(self, store: Path, port: int) -> None:
        self.runs = StoredRuns(store)
        try:
            super().__init__((HOST, port), Handler)
        except (OSError, OverflowError) as error:
            raise HarnessError(
                f"port {port}: cannot be listened on: {error}; choose another with --port"
            ) from error

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_port}/"

    @property
    def hosts(self) -> set[str]:
        """Names under which a request may address this server."""
        return {f"{name}:{self.server_port}" for name in (HOST, "localhost")}


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Web
    protocol_version = "HTTP/1.1"
    server_version = "lockhavoc"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(send_body=True)

    def do_HEAD(self) -> None:
        self._answer(send_body=False)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the address bar says what was asked for."""

    def _answer(self, *, send_body: bool) -> None:
        if self.headers.get("Host", "") not in self.server.hosts:
            self._page("Not here", "this server answers to its own address only", 403, send_body)
            return
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        words = [unquote(word) for word in parts.path.split("/")[1:]]
        try:
            self._route(words, query, send_body)
        except Found as found:
            self._send(found.body, found.kind, found.status, send_body)
        except UserError as error:
            self._page("Not found", str(error), 404, send_body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _route(self, words: list[str], query: dict[str, str], send_body: bool) -> None:
        runs = self.server.runs
        routes: dict[tuple[str, int], Callable[[], str]] = {
            ("", 1): lambda: pages.index(runs.all(), _filters(query), number=_number(query)),
            ("matrix", 1): lambda: pages.matrix(runs.all()),
            ("campaign", 2): lambda: pages.campaign(runs.all(), words[1]),
            ("compare", 1): lambda: _compare(runs, query),
            ("files", 3): lambda: self._listing(words[1], words[2]),
        }
        made = routes.get((words[0], len(words)))
        if made is not None:
            raise Found(made().encode(), _HTML)
        if words[0] == "badge" and len(words) == 2:
            raise Found(_badge(runs, words[1].removesuffix(".svg")).encode(), "image/svg+xml")
        if words[0] == "run" and len(words) >= 3:
            self._file(words[1], words[2], words[3:], send_body)
        elif words[0] == "zip" and len(words) == 3:
            self._zip(words[1], words[2], send_body)
        else:
            raise UserError(f"{self.path!r}: there is no such page")

    def _directory(self, name: str, stamp: str) -> Path:
        path = self.server.runs.directory(name, stamp)
        if path is None:
            raise UserError(f"run {name}/{stamp!r}: there is none in this store")
        return path

    def _listing(self, name: str, stamp: str) -> str:
        found = _files(self._directory(name, stamp))
        return pages.listing(f"{name}/{stamp}", [(n, p.stat().st_size) for n, p in found])

    def _file(self, name: str, stamp: str, words: list[str], send_body: bool) -> None:
        directory = self._directory(name, stamp)
        wanted = "/".join(words) or REPORT
        path = dict(_files(directory)).get(wanted)
        if path is None and wanted == REPORT:  # still going, or made before there were pages
            raise Found(self._listing(name, stamp).encode(), _HTML)
        if path is None:
            raise UserError(f"{name}/{stamp}/{wanted}: this run has no such file")
        kind = _HTML if wanted == REPORT else _TYPES.get(path.suffix, _TEXT)
        with path.open("rb") as file:
            self._stream(file, path.stat().st_size, kind, send_body)

    def _zip(self, name: str, stamp: str, send_body: bool) -> None:
        directory = self._directory(name, stamp)
        with tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
                for inner, path in _files(directory):
                    archive.write(path, f"{name}-{directory.resolve().name}/{inner}")
            size = file.tell()
            file.seek(0)
            self._stream(file, size, _ZIP, send_body)

    def _page(self, title: str, says: str, status: int, send_body: bool) -> None:
        self._send(pages.problem(title, says).encode(), _HTML, status, send_body)

    def _send(self, body: bytes, kind: str, status: int, send_body: bool) -> None:
        self._head(len(body), kind, status)
        if send_body:
            self.wfile.write(body)

    def _stream(self, file: IO[bytes], size: int, kind: str, send_body: bool) -> None:
        self._head(size, kind, HTTPStatus.OK)
        if send_body:
            shutil.copyfileobj(file, self.wfile)

    def _head(self, size: int, kind: str, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        if kind == _ZIP:
            self.send_header("Content-Disposition", "attachment")
        if kind != _HTML:
            self.send_header("Content-Security-Policy", _STRICT)
        self.end_headers()


def _filters(query: dict[str, str]) -> pages.Filters:
    known = {name: query[name] for name in pages.Filters.__struct_fields__ if name in query}
    return pages.Filters(**known)


def _number(query: dict[str, str]) -> int:
    text = query.get("page", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        raise UserError(f"page={text!r}: must be a number from 0")
    return int(text)


def _compare(runs: StoredRuns, query: dict[str, str]) -> str:
    left, right = query.get("a", ""), query.get("b", "")
    return pages.compare((left, runs.report(left)), (right, runs.report(right)))


def _badge(runs: StoredRuns, name: str) -> str:
    return badge(runs.report(f"{name}/latest").verdict)


def _files(directory: Path) -> list[tuple[str, Path]]:
    """The regular files of a run with their names in it; nothing that a link leads out to."""
    root = directory.resolve()
    found = [
        (path.relative_to(directory).as_posix(), path)
        for path in directory.rglob("*")
        if path.is_file() and path.resolve().is_relative_to(root)
    ]
    return sorted(found)


def serve(store: Path, *, port: int) -> int:
    """Serves a store until Ctrl-C."""
    if not store.is_dir():
        raise UserError(f"{store}: is not a directory; name the store with --store")
    with Web(store, port) as web:
        click.echo(f"{web.url}  (Ctrl-C ends it)")
        try:
            web.serve_forever()
        except KeyboardInterrupt:
            click.echo("", err=True)
    return 0
