"""etcd as a family of servers, spoken to by the JSON gateway of its client port.

    EtcdFamily().probe("127.0.0.1", 2379, 250)        # Probe(outcome="answered", rtt_ns=900000)
    EtcdFamily().facts("127.0.0.1", 2379)["role"]     # "primary": the leader of the quorum

Why the gateway: every etcd since 3.4 has it under ``/v3/``, a bare socket can speak it, and a call
by it is counted like one by gRPC.  The echo is ``Maintenance.Status``, which no lock library asks
for; it is answered by the member itself, with or without a quorum.

Peer ports have no gateway, so there the same call goes by gRPC (``grpc_echo``).  Clients are not
echoed that way: what an HTTP/2 server says first would be cut off before the call was read.

Traps.  ``facts`` reads ``/metrics`` and a *serializable* range, and no Status: it must not move the
count of echoes that it reports, and it must answer on a member that has lost its leader.  A member
that was cut off goes on saying that it leads until its election time-out is over, hence ``term``.
HTTP/1.0 is spoken, so that an answer that does not tell its length ends where the connection does;
echoes ask in HTTP/1.1 to keep it open, since the server's closing would show where its answer does
not (a silent ``cut-reply``).
Reference: etcd documentation, "API reference", "Monitoring etcd" and "gRPC gateway".
"""

from __future__ import annotations

import base64
import json
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compose.families import grpc_echo
from compose.families.base import Family
from compose.waiting import wait_until
from harness.core import limits
from harness.core.clock import NS_PER_S, MonotonicClock, ms
from harness.core.errors import AnsweredError, HarnessError
from harness.core.protocols import Probe
from harness.core.undo import Step, http_step

_CLOCK = MonotonicClock()  # a socket's deadline is real time, also where the run's clock is not
_ANSWER_BYTES_MAX = 4 << 20  # /metrics is about 150 kB; more means that this is no etcd
_DELETE = "kv/deleterange"
_ALL_KEYS = {"key": "AA==", "range_end": "AA=="}  # a range from \0 to \0 is everything
_ECHOES = 'grpc_server_started_total{grpc_method="Status",grpc_service="etcdserverpb.Maintenance"'
_STATUS = "/etcdserverpb.Maintenance/Status"
_LEADS, _BORN = "etcd_server_is_leader", "process_start_time_seconds"
_VERSION = re.compile(r'^etcd_server_version{server_version="([^"]+)"} 1$', re.MULTILINE)
_LENGTH = re.compile(rb"(?im)^content-length: *(\d+)")
_MEMBER = re.compile(r'^etcd_server_id{server_id="([^"]+)"} 1$', re.MULTILINE)
_MEMBER_TIMEOUT_S = 15
_MARKS = "lockhavoc/marks/"  # beside what lock libraries write, never among it

Echo = Callable[[socket.socket, int], None]  # one echo on an open connection, until (ns)


class _CutShortError(Exception):
    """The connection ended before the answer was whole."""


class EtcdFamily(Family):
    """``Family`` for etcd 3.4 and later."""

    name = "etcd"
    replicated = True

    def probe(self, host: str, port: int, timeout_ms: int) -> Probe:
        """One ``Maintenance.Status``; rtt_ns counts from sending, without the connect."""
        request = _request("POST", "/v3/maintenance/status", {}, keeps_open=True)

        def echo(connection: socket.socket, deadline_ns: int) -> None:
            _exchange(connection, request, deadline_ns)

        return _probe(host, port, echo, timeout_ms)

    def peer_probe(self, host: str, port: int, timeout_ms: int) -> Probe:
        """The same call by gRPC, which the peer port takes too; the gateway is not there."""

        def echo(connection: socket.socket, deadline_ns: int) -> None:
            def receive() -> bytes:
                _limit(connection, deadline_ns)
                return connection.recv(65536)

            _limit(connection, deadline_ns)
            connection.sendall(grpc_echo.request(_STATUS))
            if not grpc_echo.await_end(receive):
                raise _CutShortError

        return _probe(host, port, echo, timeout_ms)

    def facts(
        self, host: str, port: int, timeout_ms: int = limits.EVIDENCE_TIMEOUT_MS
    ) -> dict[str, Any]:
        """See ``Family.facts``; ``keys`` counts those that this member has, ``term`` is raft's."""
        metrics = _ask(host, port, _request("GET", "/metrics"), timeout_ms)
        try:
            found: dict[str, Any] = {
                "role": "primary" if _metric(metrics, _LEADS) == 1 else "member",
                "server": "etcd",
                "version": _label(metrics, _VERSION, "etcd_server_version"),
                "run_id": f"{_label(metrics, _MEMBER, 'etcd_server_id')}"
                f"@{_metric(metrics, _BORN):.2f}",
                "echoes": int(_metric(metrics, _ECHOES)),
                "persistent": True,
            }
        except (LookupError, ValueError) as error:
            raise HarnessError(f"server at {host}:{port}: /metrics lacks {error}") from error
        local = {**_ALL_KEYS, "serializable": True, "count_only": True}
        said = _call(host, port, "kv/range", local, timeout_ms)
        found["keys"] = int(said.get("count", 0))  # the gateway leaves zeros out
        found["term"] = int(said["header"]["raft_term"])
        return found

    def check_ready(self, host: str, port: int) -> None:
        """A read that needs the quorum: there is a leader, and this member follows it."""
        _call(host, port, "kv/range", {**_ALL_KEYS, "count_only": True}, limits.EVIDENCE_TIMEOUT_MS)

    def leave_mark(self, host: str, port: int, mark: str) -> None:
        body = {"key": _b64(_MARKS + mark), "value": _b64("1")}
        _call(host, port, "kv/put", body, limits.EVIDENCE_TIMEOUT_MS)

    def has_mark(self, host: str, port: int, mark: str) -> bool:
        """Among what this member itself has: it asks nobody else."""
        body = {"key": _b64(_MARKS + mark), "serializable": True, "count_only": True}
        said = _call(host, port, "kv/range", body, limits.EVIDENCE_TIMEOUT_MS)
        return int(said.get("count", 0)) == 1

    def command(self, host: str, port: int, words: Sequence[str]) -> str:
        """``del --all`` removes every key of the cluster (and answers how many); ``alarm activate``
        and ``alarm disarm`` raise and clear this member's alarm NOSPACE (answers the alarms);
        ``member replace NAME`` makes room for a new member in place of one that lost its data."""
        if words[:2] == ("member", "replace") and len(words) == 3:
            return _replace_member(host, port, words[2])
        what, body = self._meant(host, port, words)
        said = _call(host, port, what, body, limits.EVIDENCE_TIMEOUT_MS)
        if what == _DELETE:
            return str(said.get("deleted", "0"))
        return json.dumps(said.get("alarms", []))

    def undo_command(self, host: str, port: int, words: Sequence[str]) -> Sequence[Step]:
        """An alarm outlives restarts and is cleared on any start of the server."""
        what, body = self._meant(host, port, words)
        return [http_step("POST", f"http://{host}:{port}/v3/{what}", body)]

    def _meant(self, host: str, port: int, words: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """(call of the gateway, its body)."""
        if tuple(words) == ("del", "--all"):
            return _DELETE, dict(_ALL_KEYS)
        if tuple(words) not in (("alarm", "activate"), ("alarm", "disarm")):
            raise HarnessError(f"server at {host}:{port}: command {' '.join(words)!r} is unknown")
        local = {**_ALL_KEYS, "serializable": True, "count_only": True}
        header = _call(host, port, "kv/range", local, limits.EVIDENCE_TIMEOUT_MS)["header"]
        action = "ACTIVATE" if words[1] == "activate" else "DEACTIVATE"
        return "maintenance/alarm", {
            "action": action, "memberID": header["member_id"], "alarm": "NOSPACE"
        }  # fmt: skip


def _replace_member(host: str, port: int, name: str) -> str:
    """Takes a member out of the list and adds one at its addresses; answers the new one's id.

    Trap: etcd adds nobody ("unhealthy cluster") before the others have been connected for five
    seconds without a break, so it is asked again for a while.
    """

    def call(what: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return _call(host, port, f"cluster/member/{what}", body, _MEMBER_TIMEOUT_S * 1000)

    def led() -> bool:
        try:
            EtcdFamily().check_ready(host, port)
        except HarnessError:
            return False
        return True

    # The one that was lost may have led, and without a leader nothing can be changed.
    if not wait_until(led, timeout_s=_MEMBER_TIMEOUT_S):
        raise HarnessError(f"server at {host}:{port}: had no leader for {_MEMBER_TIMEOUT_S} s")
    listed = call("list", {})["members"]
    old = next((member for member in listed if member.get("name") == name), None)
    waiting = next((member for member in listed if not member.get("name")), None)
    if old is None and waiting is not None:  # added before, and has not started since
        return str(waiting["ID"])
    if old is None:
        names = ", ".join(member.get("name", "(not started)") for member in listed)
        raise HarnessError(f"server at {host}:{port}: no member is named {name!r}, but {names}")
    call("remove", {"ID": old["ID"]})
    added: list[str] = []
    answers: list[str] = []

    def add() -> bool:
        try:
            said = call("add", {"peerURLs": old["peerURLs"]})
        except AnsweredError as error:
            answers.append(str(error))
            return False
        added.append(str(said["member"]["ID"]))
        return True

    if not wait_until(add, timeout_s=_MEMBER_TIMEOUT_S):
        raise HarnessError(
            f"{name} could not be added again in {_MEMBER_TIMEOUT_S} s: {answers[-1]}"
        )
    return added[0]


def _call(
    host: str, port: int, what: str, body: Mapping[str, Any], timeout_ms: int
) -> dict[str, Any]:
    """One call by the gateway; AnsweredError if etcd answers with an error."""
    text = _ask(host, port, _request("POST", f"/v3/{what}", body), timeout_ms)
    try:
        said = json.loads(text)
    except ValueError as error:
        raise HarnessError(f"server at {host}:{port}: {what} gave no JSON: {text[:200]}") from error
    if not isinstance(said, dict) or "header" not in said:
        raise HarnessError(f"server at {host}:{port}: {what} gave no header: {text[:200]}")
    return said


def _probe(host: str, port: int, echo: Echo, timeout_ms: int) -> Probe:
    deadline_ns = _CLOCK.now() + ms(timeout_ms)
    try:
        connection = socket.create_connection((host, port), timeout=timeout_ms / 1000)
    except TimeoutError:
        return Probe("silent")
    except OSError:
        return Probe("refused")
    with connection:
        sent_ns = _CLOCK.now()
        try:
            echo(connection, deadline_ns)
        except TimeoutError:
            return Probe("silent")
        except (_CutShortError, OSError):
            return Probe("closed")
        return Probe("answered", _CLOCK.now() - sent_ns)


def _ask(host: str, port: int, request: bytes, timeout_ms: int) -> str:
    """Body of the answer.  HarnessError if there is none in ``timeout_ms``, AnsweredError for a
    status other than 200."""
    what = request.split(b" ", 2)[1].decode()
    deadline_ns = _CLOCK.now() + ms(timeout_ms)
    try:
        with socket.create_connection((host, port), timeout=timeout_ms / 1000) as connection:
            status, body = _exchange(connection, request, deadline_ns)
    except TimeoutError as error:
        raise HarnessError(
            f"server at {host}:{port} gave no answer to {what} in {timeout_ms} ms"
        ) from error
    except (_CutShortError, OSError) as error:
        raise HarnessError(
            f"server at {host}:{port} did not answer {what}: {error or 'connection closed'}"
        ) from error
    text = body.decode(errors="replace")
    if status != 200:
        raise AnsweredError(f"server answered {what} with status {status}: {text.strip()[:200]}")
    return text


def _request(
    method: str, path: str, body: Mapping[str, Any] | None = None, *, keeps_open: bool = False
) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    version = "1.1\r\nHost: etcd" if keeps_open else "1.0"
    head = f"{method} {path} HTTP/{version}\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def _exchange(connection: socket.socket, request: bytes, deadline_ns: int) -> tuple[int, bytes]:
    """(status, body) of one request; TimeoutError after the deadline."""
    _limit(connection, deadline_ns)
    connection.sendall(request)
    received = b""
    while not _is_whole(received):
        _limit(connection, deadline_ns)
        data = connection.recv(65536)
        if not data:
            break
        received += data
        if len(received) > _ANSWER_BYTES_MAX:
            raise _CutShortError(f"more than {_ANSWER_BYTES_MAX} bytes: this is no etcd")
    head, end, body = received.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if not end or len(words) < 2 or not words[1].isdigit():
        raise _CutShortError("no whole answer")
    if _LENGTH.search(head) and not _is_whole(received):
        raise _CutShortError("the answer was cut short")
    return int(words[1]), body


def _is_whole(received: bytes) -> bool:
    """True if the answer says how long it is and all of that is here."""
    head, end, body = received.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return bool(end) and length is not None and len(body) >= int(length[1])


def _limit(connection: socket.socket, deadline_ns: int) -> None:
    left_ns = deadline_ns - _CLOCK.now()
    if left_ns <= 0:
        raise TimeoutError
    connection.settimeout(left_ns / NS_PER_S)


def _metric(metrics: str, name: str) -> float:
    """Value of the first sample whose line begins so; LookupError names it if there is none."""
    start = metrics.find(f"\n{name}")
    if start < 0:
        raise LookupError(name)
    return float(metrics[start + 1 :].split("\n", 1)[0].rsplit(" ", 1)[1])


def _label(metrics: str, pattern: re.Pattern[str], name: str) -> str:
    found = pattern.search(metrics)
    if not found:
        raise LookupError(name)
    return found[1]


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
