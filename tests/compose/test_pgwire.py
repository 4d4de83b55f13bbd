"""PostgreSQL's wire protocol against peers that behave badly, each in its own way."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

import pytest

from compose.families import pgwire
from compose.families.pgbouncer import PgbouncerFamily
from compose.families.postgres import probe
from harness.core.errors import HarnessError
from tests.compose.test_process_probe import peer

HOST = "127.0.0.1"


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def cell(text: str | None) -> bytes:
    data = b"" if text is None else text.encode()
    return struct.pack("!i", -1 if text is None else len(data)) + data


WELCOME = message(b"R", struct.pack("!i", 0)) + message(b"S", b"server_version\x0017\0")
READY = message(b"Z", b"I")
DONE = message(b"C", b"SELECT 1\0")


def columns(*names: str) -> bytes:
    body = b"".join(name.encode() + b"\0" + bytes(18) for name in names)
    return message(b"T", struct.pack("!h", len(names)) + body)


def row(*cells: str | None) -> bytes:
    return message(b"D", struct.pack("!h", len(cells)) + b"".join(map(cell, cells)))


def error(state: str, text: str) -> bytes:
    return message(b"E", f"SFATAL\0C{state}\0M{text}\0\0".encode())


def says(*parts: bytes) -> Callable[[socket.socket], None]:
    """Reads what comes and answers this, one byte at a time where that could confuse."""

    def serve(connection: socket.socket) -> None:
        connection.recv(65536)
        for byte in b"".join(parts):
            connection.sendall(bytes([byte]))

    return serve


def test_rows_and_the_names_of_their_columns() -> None:
    answer = columns("a", "b") + row("1", None) + row("", "zwei") + DONE
    with peer(says(WELCOME, READY, answer, READY)) as port:
        assert pgwire.ask(HOST, port, "SELECT ...") == [["1", ""], ["", "zwei"]]
        table = pgwire.table(HOST, port, "SELECT ...")
    assert table == [{"a": "1", "b": ""}, {"a": "", "b": "zwei"}]


def test_start_up_and_question_are_one_packet_and_no_good_bye() -> None:
    got = []

    def serve(connection: socket.socket) -> None:
        got.append(connection.recv(65536))
        connection.sendall(WELCOME + READY + columns("x") + row("1") + DONE + READY)

    with peer(serve) as port:
        pgwire.ask(HOST, port, "SELECT %s", "it's", database="echo")
    (size, protocol), start = struct.unpack("!ii", got[0][:8]), got[0]
    assert protocol == 196608
    settings = start[8 : size - 2].split(b"\0")
    assert settings[:4] == [b"user", b"postgres", b"database", b"echo"]
    assert start[size:] == message(b"Q", b"SELECT 'it''s'\0")


def test_an_error_is_an_answer_with_its_state() -> None:
    refused = error("25006", "cannot execute INSERT in a read-only transaction")
    with peer(says(WELCOME, READY, refused, READY)) as port:
        with pytest.raises(pgwire.SqlError, match="25006 cannot execute") as raised:
            pgwire.ask(HOST, port, "INSERT ...")
        assert raised.value.state == "25006"
        assert probe(HOST, port, 500).outcome == "answered"


def test_a_server_that_starts_up_answers_too() -> None:
    with peer(says(error("57P03", "the database system is starting up"))) as port:
        assert probe(HOST, port, 500).outcome == "answered"
        with pytest.raises(HarnessError, match="starting up"):
            pgwire.ask(HOST, port, "SELECT 1")


def test_a_session_that_is_ended_meanwhile_is_told_so() -> None:
    with (
        peer(says(WELCOME, READY, error("57P01", "terminating connection"))) as port,
        pytest.raises(pgwire.SqlError, match="57P01"),
    ):
        pgwire.ask(HOST, port, "SELECT pg_sleep(9)")


def test_a_password_is_not_given() -> None:
    with (
        peer(says(message(b"R", struct.pack("!i", 5) + b"salt"))) as port,
        pytest.raises(pgwire.SqlError, match=r"pg_hba\.conf must say trust"),
    ):
        pgwire.ask(HOST, port, "SELECT 1")


def test_an_answer_to_another_echo_does_not_count() -> None:
    with peer(says(WELCOME, READY, columns("x", "y"), row("other", "1"), DONE, READY)) as port:
        assert probe(HOST, port, 500).outcome == "closed"


@pytest.mark.parametrize("parts", [(), (WELCOME,), (WELCOME, READY, b"D\0\0")])
def test_a_connection_that_ends_too_early_is_closed(parts: tuple[bytes, ...]) -> None:
    with peer(says(*parts)) as port:
        assert probe(HOST, port, 500).outcome == "closed"
        with pytest.raises(HarnessError, match="it closed the connection"):
            pgwire.ask(HOST, port, "SELECT 1")


def test_nobody_listens_is_refused_and_silence_is_in_time() -> None:
    with socket.socket() as unused:
        unused.bind((HOST, 0))  # bound but not listening
        assert probe(HOST, unused.getsockname()[1], 200).outcome == "refused"
    with socket.create_server((HOST, 0)) as listener:  # the kernel accepts, nobody reads
        before = time.monotonic()
        assert probe(HOST, listener.getsockname()[1], 150).outcome == "silent"
        assert 0.14 < time.monotonic() - before < 1
        with pytest.raises(HarnessError, match="gave no answer to 'SELECT 1' in 100 ms"):
            pgwire.ask(HOST, listener.getsockname()[1], "SELECT 1", timeout_ms=100)


def test_a_stranger_is_not_believed() -> None:
    with (
        peer(says(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as port,
        pytest.raises(HarnessError, match="this is no PostgreSQL"),
    ):
        pgwire.ask(HOST, port, "SELECT 1")


@pytest.mark.parametrize(("text", "literal"), [("a", "'a'"), ("o'clock", "'o''clock'")])
def test_literals(text: str, literal: str) -> None:
    assert pgwire.quote(text) == literal


@pytest.mark.parametrize("text", ["a\\", "a\0b"])
def test_what_is_no_literal(text: str) -> None:
    with pytest.raises(ValueError, match="cannot be an SQL literal"):
        pgwire.quote(text)


def test_an_undo_step_leaves_another_start_alone_and_a_server_that_is_gone() -> None:
    asked = []

    def serve(connection: socket.socket) -> None:
        asked.append(connection.recv(65536))
        connection.sendall(WELCOME + READY + columns("x") + row("17.5") + DONE + READY)

    with peer(serve) as port:
        assert pgwire.main([HOST, str(port), "16.0", "ALTER SYSTEM RESET x"]) == 0
        assert len(asked) == 1
        assert pgwire.main([HOST, str(port), "17.5", "ALTER SYSTEM RESET x"]) == 0
        assert b"ALTER SYSTEM RESET x" in asked[2]
    assert pgwire.main([HOST, str(port), "17.5", "ALTER SYSTEM RESET x"]) == 0
    with pytest.raises(HarnessError, match="not on loopback"):
        pgwire.main(["192.0.2.1", "5432", "17.5", "SELECT 1"])


def test_an_old_pooler_says_that_it_cannot_end_a_client() -> None:
    clients = columns("type", "application_name", "ptr") + row("C", "lockhavoc-4711", "0x1") + DONE
    with (
        peer(says(WELCOME, READY, clients, READY)) as port,
        pytest.raises(HarnessError, match=r"older than 1\.24"),
    ):
        PgbouncerFamily().sessions(HOST, port, "lockhavoc-4711")
