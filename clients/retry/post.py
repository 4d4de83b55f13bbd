"""One HTTP POST that ends in time, whatever the other side does.

    status, answer = post("https://hooks.example.org/x", b"{}", {}, limit_s=2.0)

The limit covers everything: names, connecting, TLS, an answer that drips byte by byte.  A socket's
own time-out cannot do that (it starts anew with every byte), so the call is made in a thread, and
its socket is shut at the end of the time.

Traps: redirections are answers and not followed, since a key or a letter must not go elsewhere than
it was told to.  Messages name the host only; a path or a header may hold a secret.  No proxy of
the environment is used.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import socket
import threading
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from harness.core.errors import UserError

SCHEMES = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}


class PostFailed(Exception):
    """No answer in time, or none at all; the text names the host and the reason."""


def checked_url(url: str, field: str, *, secret: bool) -> str:
    """The URL, or UserError; with a ``secret`` in the request, plain http goes to loopback only."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UserError(f"{field}: {error}; use https://HOST[:PORT]/PATH") from error
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise UserError(f"{field}: must be https://HOST[:PORT]/PATH or http://..., got no such URL")
    if parts.username or parts.password:
        raise UserError(f"{field}: must hold no user and password; they would end up in logs")
    if secret and parts.scheme == "http" and not _loopback(parts.hostname):
        raise UserError(
            f"{field}: {parts.hostname} would get the key over plain http; use https, or loopback"
        )
    return url


def _loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def post(
    url: str, body: bytes, headers: Mapping[str, str], limit_s: float, bytes_max: int = 64 << 10
) -> tuple[int, bytes]:
    """Status and body of the answer; PostFailed if there is none within ``limit_s`` seconds."""
    headers = {"Content-Type": "application/json", **headers}
    call = _Call(urlsplit(url), body, headers, limit_s, bytes_max)
    call.thread.start()
    call.thread.join(limit_s)
    if call.thread.is_alive():
        call.end()
        raise PostFailed(f"{call.host}: no answer within {limit_s:.3g} s")
    if call.answer is None:
        error = call.error
        said = str(error).strip() or "no reason given"
        raise PostFailed(f"{call.host}: {type(error).__name__}: {said}") from error
    return call.answer


class _Call:
    def __init__(
        self,
        url: SplitResult,
        body: bytes,
        headers: Mapping[str, str],
        limit_s: float,
        bytes_max: int,
    ) -> None:
        self.host = url.hostname or ""
        self.answer: tuple[int, bytes] | None = None
        self.error: Exception | None = None
        # The socket's own limit only ends a thread that nobody waits for any more.
        self._connection = SCHEMES[url.scheme](self.host, url.port, timeout=limit_s + 1)
        self._target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        self._body, self._headers, self._bytes_max = body, headers, bytes_max
        self._ended = False
        self.thread = threading.Thread(target=self._run, name=f"post to {self.host}", daemon=True)

    def _run(self) -> None:
        try:
            self._connection.connect()
            if self._ended:
                return  # too late: nothing may be sent any more
            self._connection.request("POST", self._target, self._body, dict(self._headers))
            with self._connection.getresponse() as response:
                answer = response.read(self._bytes_max + 1)
                if len(answer) > self._bytes_max:
                    raise ValueError(f"answered more than {self._bytes_max} bytes")
                self.answer = response.status, answer
        except Exception as error:
            self.error = error
        finally:
            self._connection.close()

    def end(self) -> None:
        self._ended = True
        sock = self._connection.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # wakes the thread; closing would not
