"""Where escalations and dead letters go besides a file: a webhook, a list in Redis, several.

    kept = JsonLines("undelivered.jsonl")
    with Webhook("https://hooks.example.org/locks", kept=kept) as hook:
        options = Options(escalations=hook, dead_letters=each(JsonLines("dead.jsonl"), hook))
    letters = RedisList(Redis("redis://127.0.0.1:6379"), "dead", kept=kept)

A webhook never keeps the loop waiting: a thread delivers, tries again within ``within_s``, and what
nobody took (refused, too late, too many) goes to ``kept`` as it is, so it can be re-queued from
there.  A list in Redis costs the loop one command, at most the limit of its connection.

Traps: what a webhook has not delivered yet lives in memory, so a killed process loses it; letters
that must not be lost go to a file first (``each``).  ``close`` waits for the rest; without it that
happens at the end of the program, when newer Pythons start no threads any more and the rest goes
to ``kept``.  A receiver may get a record twice, if its first answer was lost.
"""

from __future__ import annotations

import atexit
import http.client
import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from clients.retry.post import PostFailed, checked_url, post
from clients.retry.record import Request, Sink, request_in
from clients.retry.redis_link import Redis, RedisSaid
from harness.core.errors import UserError

LOG = logging.getLogger("lockhavoc.retry")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
PAGE = 500
TRY_AGAIN = {
    http.client.REQUEST_TIMEOUT, http.client.TOO_EARLY, http.client.TOO_MANY_REQUESTS,
}  # fmt: skip


def each(*sinks: Sink) -> Sink:
    """One sink that gives every record to all, also where one of them fails."""

    def give(record: dict[str, Any]) -> None:
        failed: Exception | None = None
        for sink in sinks:
            try:
                sink(record)
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed

    return give


class Webhook:
    """POSTs each record as JSON to the URL that the user names; see the module.

    timeout_s: of one try.  within_s: from the record to the last try.  waiting_max: more than
    these go to ``kept`` at once.  headers: for instance an Authorization; then plain http is
    refused except to loopback.
    """

    def __init__(
        self,
        url: str,
        *,
        kept: Sink,
        timeout_s: float = 2.0,
        within_s: float = 30.0,
        waiting_max: int = 1_000,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._url = checked_url(url, "webhook URL", secret=bool(headers))
        self._host = urlsplit(url).hostname
        self._kept, self._headers = kept, dict(headers or {})
        self._timeout_s, self._within_s = timeout_s, within_s
        self._waiting: queue.Queue[tuple[float, dict[str, Any]]] = queue.Queue(waiting_max)
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._end = float("inf")  # when ``close`` gives up
        self._closing = threading.Event()

    def __repr__(self) -> str:
        return f"Webhook({self._host})"  # the path may hold a secret

    def __call__(self, record: dict[str, Any]) -> None:
        with self._guard:
            if self._closing.is_set():
                self._keep(record, "the webhook is closed")
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=repr(self), daemon=True)
                self._thread.start()
                atexit.register(self.close)
            try:
                self._waiting.put_nowait((time.monotonic() + self._within_s, record))
                return
            except queue.Full:
                pass
        self._keep(record, "too many records wait for it")

    def close(self, within_s: float = 5.0) -> None:
        """Delivers what waits, for at most so many seconds; the rest is kept."""
        with self._guard:
            thread, self._end = self._thread, time.monotonic() + within_s
            self._closing.set()
        atexit.unregister(self.close)
        if thread is not None:
            thread.join(within_s + self._timeout_s + 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self) -> None:
        while True:
            try:
                taken = self._waiting.get(timeout=0.1)
            except queue.Empty:
                if self._closing.is_set():
                    return  # nothing is put in after that
                continue
            why = self._refused(*taken)
            if why:
                self._keep(taken[1], why)

    def _refused(self, deadline: float, record: dict[str, Any]) -> str:
        """Why it was not delivered; empty if it was."""
        body = json.dumps(record, separators=(",", ":")).encode()
        pause_s, why = FIRST_PAUSE_S, "no time was left for it"
        while (left_s := min(deadline, self._end) - time.monotonic()) > 0:
            try:
                limit_s = min(self._timeout_s, left_s)
                status, _ = post(self._url, body, self._headers, limit_s)
            except (PostFailed, RuntimeError, OSError) as error:
                why = str(error)
            else:
                if 200 <= status < 300:
                    return ""
                why = f"{self._host} answered {status}"
                if status < 500 and status not in TRY_AGAIN:
                    return why
            left_s = max(0.0, min(deadline, self._end) - time.monotonic())
            # Who closes wants the rest tried now; the pause then only spares the receiver.
            self._closing.wait(min(pause_s, left_s))
            if self._closing.is_set():
                time.sleep(min(FIRST_PAUSE_S, left_s))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return why

    def _keep(self, record: dict[str, Any], why: str) -> None:
        LOG.warning("%s of %r was not delivered: %s", record.get("kind"), self, why)
        try:
            self._kept(record | {"undelivered": why})
        except Exception as error:
            LOG.error("%s of %r is lost: %s", record.get("kind"), self, error)


class RedisList:
    """Appends each record to a list; ``kept`` gets what the server does not take."""

    def __init__(self, redis: Redis, key: str, *, kept: Sink | None = None) -> None:
        self._redis, self._key, self._kept = redis, key, kept

    def __call__(self, record: dict[str, Any]) -> None:
        try:
            self._redis.call("RPUSH", self._key, json.dumps(record, separators=(",", ":")))
        except (OSError, RedisSaid) as error:
            if self._kept is None:
                raise
            LOG.warning("%s was not put into %r: %s", record.get("kind"), self._redis, error)
            self._kept(record | {"undelivered": str(error)})


def requeue_list(
    redis: Redis, key: str, give: Callable[[Request], None], lock_name: str | None = None
) -> int:
    """As ``record.requeue``, from a list in Redis: one may be given twice, none is lost."""
    place = f"list {key!r} of {redis!r}"
    given = at = 0
    while page := redis.call("LRANGE", key, at, at + PAGE - 1):
        for line in page:
            try:
                record = json.loads(line)
            except ValueError as error:
                raise UserError(f"{place}: not a JSON object: {line[:80]!r}") from error
            request = request_in(place, record, lock_name) if isinstance(record, dict) else None
            if request is None:
                at += 1
                continue
            give(request)
            given += redis.call("LREM", key, 1, line)
    return given
