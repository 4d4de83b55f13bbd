"""The undo step that speaks to a server: only to the one it was promised for, never elsewhere."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from harness.core.errors import HarnessError
from harness.core.undo import perform, resp_step

RUN_ID = "abc123"


@pytest.fixture
def server() -> Iterator[Callable[[bytes, bytes], tuple[int, list[bytes]]]]:
    """serve(answer to INFO, answer to the command) -> (port, what it was asked)."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def serve(info: bytes, answer: bytes) -> tuple[int, list[bytes]]:
        asked: list[bytes] = []

        def run() -> None:
            connection, _ = listener.accept()
            with connection:
                for reply in (info, answer):
                    data = connection.recv(65536)
                    if not data:
                        return
                    asked.append(data)
                    for byte in range(len(reply)):  # in pieces, as a network may
                        connection.sendall(reply[byte : byte + 1])

        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()
        return listener.getsockname()[1], asked

    yield serve
    listener.close()
    for thread in threads:
        thread.join(5)


def bulk(text: str) -> bytes:
    return f"${len(text)}\r\n{text}\r\n".encode()


def info(run_id: str) -> bytes:
    return bulk(f"# Server\r\nredis_version:8.0.2\r\nrun_id:{run_id}\r\ntcp_port:1\r\n")


def test_it_sends_the_command_to_the_server_it_was_promised_for(
    server: Callable[[bytes, bytes], tuple[int, list[bytes]]],
) -> None:
    port, asked = server(info(RUN_ID), b"+OK\r\n")
    step = resp_step("127.0.0.1", port, ["CONFIG", "SET", "maxmemory", "0"], run_id=RUN_ID)
    assert "CONFIG SET maxmemory 0" in perform(step)
    assert asked[1] == b"*4\r\n$6\r\nCONFIG\r\n$3\r\nSET\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n"


def test_another_server_at_that_port_is_left_alone(
    server: Callable[[bytes, bytes], tuple[int, list[bytes]]],
) -> None:
    port, asked = server(info("abc1234"), b"+OK\r\n")  # begins alike, but is another
    assert "left alone" in perform(resp_step("127.0.0.1", port, ["FLUSHALL"], run_id=RUN_ID))
    assert len(asked) == 1


def test_an_error_answer_is_no_success(
    server: Callable[[bytes, bytes], tuple[int, list[bytes]]],
) -> None:
    port, _ = server(info(RUN_ID), b"-ERR unknown option\r\n")
    with pytest.raises(HarnessError, match="ERR unknown option"):
        perform(resp_step("127.0.0.1", port, ["CONFIG", "SET", "x", "1"], run_id=RUN_ID))


def test_a_server_that_is_gone_needs_no_undo() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert "server is gone" in perform(resp_step("127.0.0.1", port, ["PING"], run_id=RUN_ID))


def test_no_step_leaves_this_machine() -> None:
    with pytest.raises(HarnessError, match="not on loopback"):
        perform(resp_step("192.0.2.1", 6379, ["PING"], run_id=RUN_ID))
