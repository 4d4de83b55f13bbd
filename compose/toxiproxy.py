"""HTTP client for Toxiproxy 2.12: what faults need and nothing else.

    api = ToxiproxyClient("http://127.0.0.1:8474")
    api.populate([{"name": "w0-redis", "listen": "127.0.0.1:0", "upstream": "127.0.0.1:6379"}])
    api.add_toxic("w0-redis", kind="latency", stream="upstream", attributes={"latency": 100})

Why not the ``toxiproxy-python`` package: docs/decisions.md.

Traps: ``populate`` answers an error status *and* leaves the proxies made before the bad one;
toxicity defaults to 1.0 and the server's ``-seed`` has no effect, so chance is never left to it;
a ``latency`` jitter is random and hence refused here.  A call never goes through a proxy of the
environment (HTTP_PROXY), and never to another machine than this one.
"""

from __future__ import annotations

import http.client
import json
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from harness.core import limits
from harness.core.errors import HarnessError

STREAMS = ("upstream", "downstream")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class ToxiproxyError(HarnessError):
    """Toxiproxy answered with an error; ``status`` is the HTTP status (0: it did not answer)."""

    status = 0

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class BadRequestError(ToxiproxyError):
    """400: a field is missing or wrong (unknown toxic kind, stream neither up nor down)."""


class NotFoundError(ToxiproxyError):
    """404: no such proxy or toxic."""


class ConflictError(ToxiproxyError):
    """409: a proxy or toxic of that name exists already."""


class UnreachableError(ToxiproxyError):
    """No answer: the server is not there, is stopped, or took longer than the time-out."""


_ERRORS = {400: BadRequestError, 404: NotFoundError, 409: ConflictError}


class ToxiproxyClient:
    """One server; any number of clients may live side by side.  Safe to use from threads.

    Every method raises a ToxiproxyError (a HarnessError): BadRequestError, NotFoundError,
    ConflictError, UnreachableError, or the base for any other status.
    """

    def __init__(self, base_url: str, *, timeout_s: float = limits.HTTP_TIMEOUT_S) -> None:
        parts = urllib.parse.urlsplit(base_url)
        if parts.scheme != "http" or parts.hostname not in _LOOPBACK or parts.port is None:
            raise HarnessError(
                f"Toxiproxy URL {base_url!r}: must be http://127.0.0.1:PORT, on this machine"
            )
        self.base_url = base_url.rstrip("/")
        self._host, self._port = parts.hostname, parts.port
        self._timeout_s = timeout_s

    def version(self) -> str:
        """Version the server reports, e.g. "2.12.0"."""
        return str(self._call("GET", "/version")["version"])

    def proxies(self) -> dict[str, dict[str, Any]]:
        """All proxies by name: {"name", "listen", "upstream", "enabled", "toxics": [...]}."""
        return dict(self._call("GET", "/proxies"))

    def proxy(self, name: str) -> dict[str, Any]:
        """One proxy, as in ``proxies``."""
        return dict(self._call("GET", _path(name)))

    def populate(self, proxies: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Makes or replaces proxies; [{"name", "listen", "upstream"}].  Returns them as made, so
        that port 0 in ``listen`` comes back as the real port."""
        return list(self._call("POST", "/populate", list(proxies))["proxies"] or [])

    def delete(self, name: str) -> None:
        """Removes a proxy and closes its connections."""
        self._call("DELETE", _path(name))

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Disabled: open connections are closed, new ones refused."""
        self._call("PATCH", _path(name), {"enabled": enabled})

    def set_upstream(self, name: str, upstream: str) -> None:
        """Points a proxy at another ``host:port``; its open connections are closed."""
        self._call("PATCH", _path(name), {"upstream": upstream})

    def toxics(self, name: str) -> list[dict[str, Any]]:
        """[{"name", "type", "stream", "toxicity", "attributes"}] of one proxy."""
        return list(self._call("GET", _path(name, "toxics")))

    def add_toxic(
        self, name: str, *, kind: str, stream: str, attributes: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Adds a toxic under its fixed name (``toxic_name``); ConflictError if it is there."""
        if attributes.get("jitter"):
            raise HarnessError("toxic attribute jitter: must be 0, the server's chance has no seed")
        body = {
            "name": toxic_name(kind, stream),
            "type": kind,
            "stream": stream,
            "toxicity": 1.0,
            "attributes": dict(attributes),
        }
        return dict(self._call("POST", _path(name, "toxics"), body))

    def patch_toxic(self, name: str, toxic: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Changes attributes of a toxic in place.  Trap: a chunk held back by it is let go."""
        body = {"attributes": dict(attributes)}
        return dict(self._call("PATCH", _path(name, "toxics", toxic), body))

    def delete_toxic(self, name: str, toxic: str) -> None:
        """Removes a toxic; what it held back is delivered (``timeout``: connection closed)."""
        self._call("DELETE", _path(name, "toxics", toxic))

    def reset(self) -> None:
        """Enables every proxy and removes every toxic of this server."""
        self._call("POST", "/reset")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        # One connection per call: a pause of the server then cannot leave a half-read answer
        # for the next caller, and threads share nothing.
        connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
        data = None if body is None else json.dumps(body)
        try:
            connection.request(method, path, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            status, text = response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(
                f"Toxiproxy at {self.base_url} does not answer {method} {path}: "
                f"{error or type(error).__name__}"
            ) from error
        finally:
            connection.close()
        if status >= 400:
            raise _ERRORS.get(status, ToxiproxyError)(
                f"Toxiproxy at {self.base_url} refused {method} {path}: {_reason(text)}", status
            )
        return json.loads(text) if text.strip() else None


def toxic_name(kind: str, stream: str) -> str:
    """Name of a toxic; fixed, so that its removal can be promised before it exists."""
    return f"{kind}-{stream}"


def _path(*names: str) -> str:
    return "/" + "/".join(["proxies", *(urllib.parse.quote(name, safe="") for name in names)])


def _reason(text: bytes) -> str:
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return text.decode(errors="replace").strip()[:500]
