"""The Redis probe against sockets that behave badly, each in its own way."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from compose.families import resp
from harness.core.errors import HarnessError


@contextmanager
def peer(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server on loopback; ``serve`` gets each connection.  Yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def loop() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                # Who has heard enough goes, maybe before the last byte is sent.
                with connection, suppress(ConnectionError):
                    serve(connection)

        thread = threading.Thread(target=loop, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_nobody_listens_is_refused() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound but not listening
        assert resp.probe("127.0.0.1", unused.getsockname()[1], 200).outcome == "refused"


def test_accepted_but_never_answered_is_silent_and_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:  # the kernel accepts, nobody reads
        before = time.monotonic()
        seen = resp.probe("127.0.0.1", listener.getsockname()[1], 150)
        spent_s = time.monotonic() - before
    assert seen.outcome == "silent"
    assert seen.rtt_ns is None
    assert 0.14 < spent_s < 1


def test_bytes_in_drips_do_not_stretch_the_deadline() -> None:
    stop = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.recv(100)
        while not stop.wait(0.02):
            try:
                connection.sendall(b"$")
            except OSError:
                return

    with peer(drip) as port:
        before = time.monotonic()
        outcome = resp.probe("127.0.0.1", port, 150).outcome
        spent_s = time.monotonic() - before
        stop.set()
    assert outcome == "silent"
    assert spent_s < 1


def test_closed_without_an_answer_is_closed() -> None:
    with peer(lambda connection: None) as port:
        assert resp.probe("127.0.0.1", port, 500).outcome == "closed"


def test_an_answer_to_another_echo_does_not_count() -> None:
    def stale(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(b"$5\r\nother\r\n")

    with peer(stale) as port:
        assert resp.probe("127.0.0.1", port, 500).outcome != "answered"


def test_an_error_of_the_server_is_an_answer() -> None:
    def loading(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(b"-LOADING not yet\r\n")

    with peer(loading) as port:
        seen = resp.probe("127.0.0.1", port, 500)
        assert seen.outcome == "answered"
        with pytest.raises(HarnessError, match="LOADING"):
            resp.ask("127.0.0.1", port, ("PING",))


def test_facts_of_something_that_is_no_redis_are_refused() -> None:
    def other(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(b"$8\r\nfoo:bar\n\r\n")

    with peer(other) as port, pytest.raises(HarnessError, match="run_id"):
        resp.facts("127.0.0.1", port, 500)
