"""What the harness says to ZooKeeper, byte by byte, against sockets that behave badly."""

from __future__ import annotations

import socket
import struct
from typing import Any

import pytest

from compose.families.zookeeper import ZookeeperFamily
from compose.families.zookeeper_wire import Session, password_of
from harness.core.errors import AnsweredError, HarnessError
from tests.compose.test_process_probe import peer

FAMILY = ZookeeperFamily()
ENVI = "Environment:\nzookeeper.version=3.9.3-${id}, built on x\njava.io.tmpdir=/tmp/tmp.A1\n"
SERVING = "Zookeeper version: 3.9.3\nZxid: 0x500000007\nMode: {mode}\nNode count: 9\n"
NOT_SERVING = "This ZooKeeper instance is not currently serving requests\n"
SESSION = 0x10000DCC9870000


def speaking(answers: dict[bytes, str]) -> Any:
    """Answers words of four letters, and closes as ZooKeeper does."""

    def serve(connection: socket.socket) -> None:
        connection.sendall(answers[connection.recv(4)].encode())

    return serve


def test_the_password_of_a_session_is_what_the_server_made() -> None:
    """Read off a session of ZooKeeper 3.9.3."""
    assert password_of(SESSION).hex() == "2bac58efdc21a96181de3f3085eba77f"


@pytest.mark.parametrize(("mode", "role"), [("leader", "primary"), ("follower", "replica")])
def test_facts_out_of_words(mode: str, role: str) -> None:
    words = {b"envi": ENVI, b"gtmk": "306", b"srvr": SERVING.format(mode=mode)}
    with peer(speaking(words)) as port:
        FAMILY.check_ready("127.0.0.1", port)
        assert FAMILY.facts("127.0.0.1", port) == {
            "role": role, "server": "zookeeper", "version": "3.9.3", "run_id": "/tmp/tmp.A1",
            "term": 5, "echoes": 306, "keys": 9, "persistent": True,
        }  # fmt: skip


def test_a_server_without_a_leader_is_a_member_and_not_ready() -> None:
    with peer(speaking({b"envi": ENVI, b"gtmk": "306", b"srvr": NOT_SERVING})) as port:
        facts = FAMILY.facts("127.0.0.1", port)
        assert (facts["role"], facts["keys"], facts["term"]) == ("member", 0, 0)
        with pytest.raises(HarnessError, match="not currently serving"):
            FAMILY.check_ready("127.0.0.1", port)


@pytest.mark.parametrize(("word", "text"), [(b"envi", "x=y"), (b"gtmk", "no mask")])
def test_words_that_are_not_as_expected_are_named(word: bytes, text: str) -> None:
    words = {b"envi": ENVI, b"gtmk": "306", b"srvr": NOT_SERVING} | {word: text}
    with peer(speaking(words)) as port, pytest.raises(HarnessError, match="envi or gtmk lack"):
        FAMILY.facts("127.0.0.1", port)


def test_an_echo_is_answered_by_its_own_number() -> None:
    heard = []

    def echo(connection: socket.socket) -> None:
        word, number = struct.unpack(">4sq", connection.recv(12))
        heard.append((word, number))
        connection.sendall(str(number).encode())

    with peer(echo) as port:
        assert FAMILY.probe("127.0.0.1", port, 500).outcome == "answered"
        assert FAMILY.probe("127.0.0.1", port, 500).outcome == "answered"
    assert [word for word, _ in heard] == [b"stmk", b"stmk"]
    assert heard[0][1] < heard[1][1], "a later echo leaves a greater mask"


@pytest.mark.parametrize("answer", [b"", b"306", b"stmk is not executed"])
def test_another_answer_is_none(answer: bytes) -> None:
    with peer(lambda connection: connection.sendall(answer)) as port:
        assert FAMILY.probe("127.0.0.1", port, 500).outcome == "closed"


def test_nobody_and_nothing() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound but not listening
        assert FAMILY.probe("127.0.0.1", unused.getsockname()[1], 200).outcome == "refused"
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        assert FAMILY.probe("127.0.0.1", port, 150).outcome == "silent"
        with pytest.raises(HarnessError, match="gave no answer to envi in 100 ms"):
            FAMILY.facts("127.0.0.1", port, 100)


# --- sessions ------------------------------------------------------------------------------------


def record(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def read_record(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
    return connection.recv(size, socket.MSG_WAITALL)


def server(*replies: tuple[int, bytes], time_out_ms: int = 10_000, identity: int = SESSION) -> Any:
    """Makes a session and answers requests with (error, body), one after another."""

    def serve(connection: socket.socket) -> None:
        read_record(connection)
        connection.sendall(record(struct.pack(">iiqi", 0, time_out_ms, identity, 0)))
        for error, body in replies:
            (xid,) = struct.unpack_from(">i", read_record(connection))
            connection.sendall(record(struct.pack(">iqi", xid, 1, error) + body))

    return serve


def test_what_is_not_there_is_told_from_an_error() -> None:
    with (
        peer(server((-101, b""), (-101, b""), (-110, b""), (-4, b""), (0, b""))) as port,
        Session.open("127.0.0.1", port, timeout_ms=2000) as session,
    ):
        assert session.identity == SESSION
        assert session.get("/none") is None
        assert not session.exists("/none")
        assert not session.create("/there", b"")
        with pytest.raises(AnsweredError, match="get /x with the error -4"):
            session.get("/x")


def test_a_session_that_the_server_does_not_know_has_no_identity_and_is_not_closed() -> None:
    with peer(server(time_out_ms=0, identity=0)) as port:
        FAMILY.end_session("127.0.0.1", port, "0x1234")


class Contested:
    """A server that cuts off whoever asks for the end of a session, as it does when the client
    takes it up meanwhile; the session is over after ``survives`` of that, or never."""

    def __init__(self, survives: int) -> None:
        self.survives = survives
        self.asked = 0

    def serve(self, connection: socket.socket) -> None:
        if connection.recv(4, socket.MSG_PEEK) == b"dump":
            connection.recv(4)
            there = self.asked <= self.survives
            connection.sendall(f"SessionTracker dump:\n\t{SESSION:#x}\n".encode() * there)
            return
        connection.settimeout(5)
        server()(connection)
        asked = read_record(connection)
        assert struct.unpack_from(">i", asked, 4) == (-11,)
        self.asked += 1


@pytest.mark.parametrize("survives", [0, 2])
def test_an_end_of_a_session_without_an_answer_is_looked_up_and_tried_again(survives: int) -> None:
    server = Contested(survives)
    with peer(server.serve) as port:
        FAMILY.end_session("127.0.0.1", port, f"{SESSION:#x}")
    assert server.asked == survives + 1


def test_a_session_that_does_not_end_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.core.limits.HEAL_TIMEOUT_MS", 100)
    why = "0x10000dcc9870000 is still known after 100 ms .*end of a session: connection closed"
    with (
        peer(Contested(1_000_000).serve) as port,
        pytest.raises(HarnessError, match=why),
    ):
        FAMILY.end_session("127.0.0.1", port, f"{SESSION:#x}")


def test_the_end_of_a_session_of_its_own_may_stay_without_an_answer() -> None:
    """What it was made for is done: here, the mark is there."""
    with peer(server((0, b""))) as port:
        assert FAMILY.has_mark("127.0.0.1", port, "mark")


def test_a_server_that_closes_instead_of_making_a_session_is_named() -> None:
    with (
        peer(lambda connection: None) as port,
        pytest.raises(HarnessError, match="did not answer a session"),
    ):
        FAMILY.leave_mark("127.0.0.1", port, "mark")


@pytest.mark.parametrize("size", [-1, 1 << 30])
def test_a_record_of_an_impossible_length_is_refused(size: int) -> None:
    def serve(connection: socket.socket) -> None:
        read_record(connection)
        connection.sendall(struct.pack(">i", size))

    with peer(serve) as port, pytest.raises(HarnessError, match="this is no ZooKeeper"):
        FAMILY.leave_mark("127.0.0.1", port, "mark")


def test_only_one_command_is_known() -> None:
    with pytest.raises(HarnessError, match=r"'create /a'.*deleteall PATH"):
        FAMILY.command("127.0.0.1", 1, ("create", "/a"))
