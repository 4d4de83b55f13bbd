"""What the harness says to etcd, byte by byte, against sockets that behave badly."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from compose.families import grpc_echo
from compose.families.etcd import EtcdFamily
from harness.core.errors import AnsweredError, HarnessError
from tests.compose.test_process_probe import peer

FAMILY = EtcdFamily()
METRICS = """\
# HELP etcd_server_is_leader Whether or not this member is a leader.
etcd_server_is_leader {leads}
etcd_server_id{{server_id="8e9e05c5"}} 1
etcd_server_version{{server_version="3.5.16"}} 1
grpc_server_handled_total{{grpc_method="Status",grpc_service="etcdserverpb.Maintenance"}} 99
grpc_server_started_total{{grpc_method="Status",grpc_service="etcdserverpb.Maintenance",x="y"}} 7
process_start_time_seconds 1.79605121027e+09
"""
RANGE = '{"header":{"raft_term":"4"},"count":"3"}'


def http(body: str, status: str = "200 OK", *, length: bool = True) -> bytes:
    head = f"HTTP/1.0 {status}\r\n" + (f"Content-Length: {len(body)}\r\n" if length else "")
    return (head + "\r\n" + body).encode()


def answering(*answers: bytes) -> Any:
    """Serves one connection after another with these answers; the last one goes on for ever."""
    left = list(answers)

    def serve(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(left.pop(0) if len(left) > 1 else left[0])

    return serve


def test_facts_out_of_metrics_and_a_local_range() -> None:
    metrics = http(METRICS.format(leads=1), length=False)
    with peer(answering(metrics, http(RANGE))) as port:
        assert FAMILY.facts("127.0.0.1", port) == {
            "role": "primary", "server": "etcd", "version": "3.5.16",
            "run_id": "8e9e05c5@1796051210.27",
            "echoes": 7, "persistent": True, "keys": 3, "term": 4,
        }  # fmt: skip


def test_a_member_that_does_not_lead_and_has_no_key() -> None:
    empty = http('{"header":{"raft_term":"4"}}')
    with peer(answering(http(METRICS.format(leads=0)), empty)) as port:
        facts = FAMILY.facts("127.0.0.1", port)
    assert (facts["role"], facts["keys"]) == ("member", 0)


@pytest.mark.parametrize(
    "gone", ["etcd_server_version", "grpc_server_started_total", "process_start_time_seconds"]
)
def test_a_metric_that_is_missing_is_named(gone: str) -> None:
    lines = METRICS.format(leads=1).splitlines()
    text = "\n".join(line for line in lines if not line.startswith(gone)) + "\n"
    with (
        peer(answering(http(text))) as port,
        pytest.raises(HarnessError, match=f"/metrics lacks .*{gone}"),
    ):
        FAMILY.facts("127.0.0.1", port)


def test_an_error_answer_is_told_from_none() -> None:
    refusal = http('{"error":"etcdserver: no leader"}', "503 Service Unavailable")
    with peer(answering(refusal)) as port:
        assert FAMILY.probe("127.0.0.1", port, 500).outcome == "answered"
        with pytest.raises(AnsweredError, match=r"status 503.*no leader"):
            FAMILY.check_ready("127.0.0.1", port)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.0 200", http(RANGE)[:-3], b"+PONG\r\n"])
def test_an_answer_cut_short_is_none(answer: bytes) -> None:
    with peer(answering(answer)) as port:
        assert FAMILY.probe("127.0.0.1", port, 500).outcome == "closed"
        with pytest.raises(HarnessError, match="did not answer /v3/kv/range"):
            FAMILY.check_ready("127.0.0.1", port)


def test_nobody_and_nothing() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound but not listening
        port = unused.getsockname()[1]
        for probe in (FAMILY.probe, FAMILY.peer_probe):
            assert probe("127.0.0.1", port, 200).outcome == "refused"
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        for probe in (FAMILY.probe, FAMILY.peer_probe):
            assert probe("127.0.0.1", port, 150).outcome == "silent"
        with pytest.raises(HarnessError, match="gave no answer to /metrics in 100 ms"):
            FAMILY.facts("127.0.0.1", port, 100)


# --- the echo at the peer port -------------------------------------------------------------------

SETTINGS = bytes(3) + b"\x04\x00" + bytes(4)
HEADERS = b"\x00\x00\x01" + b"\x01\x04" + b"\x00\x00\x00\x01" + b"\x88"
TRAILERS = b"\x00\x00\x01" + b"\x01\x05" + b"\x00\x00\x00\x01" + b"\x88"


def pieces(*parts: bytes) -> Any:
    left: Iterator[bytes] = iter([*parts, b""])
    return lambda: next(left)


def test_a_call_has_ended_when_its_own_stream_has() -> None:
    whole = SETTINGS + HEADERS + TRAILERS
    assert grpc_echo.await_end(pieces(whole))
    assert grpc_echo.await_end(pieces(*(bytes([byte]) for byte in whole))), "however it arrives"
    assert not grpc_echo.await_end(pieces(SETTINGS + HEADERS)), "settings come before any answer"
    assert not grpc_echo.await_end(pieces(whole[:-1]))
    other = whole.replace(b"\x00\x00\x00\x01\x88", b"\x00\x00\x00\x03\x88")
    assert not grpc_echo.await_end(pieces(other)), "the end of another stream"


def test_a_call_is_framed_as_http2_wants_it() -> None:
    sent = grpc_echo.request("/etcdserverpb.Maintenance/Status")
    preface, rest = sent[:24], sent[24:]
    assert preface == b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    frames = []
    while rest:
        size = int.from_bytes(rest[:3], "big")
        frames.append((rest[3], rest[4], int.from_bytes(rest[5:9], "big"), rest[9 : 9 + size]))
        rest = rest[9 + size :]
    settings, headers, data = frames
    assert settings == (4, 0, 0, b"")
    assert headers[:3] == (1, 4, 1)
    assert headers[3].startswith(b"\x83\x86\x04\x20/etcdserverpb.Maintenance/Status")
    assert data == (0, 1, 1, bytes(5))


def test_only_one_command_is_known() -> None:
    with pytest.raises(HarnessError, match="'put a b' is unknown"):
        FAMILY.command("127.0.0.1", 1, ("put", "a", "b"))
