"""One gRPC call without arguments over a bare socket: for ports where a server speaks nothing else.

    with socket.create_connection((host, port)) as connection:
        connection.sendall(request("/etcdserverpb.Maintenance/Status"))
        answered = await_end(lambda: connection.recv(65536))

Why by hand: a gRPC library dials by itself, tries again, and shares connections; an echo is one
request on one connection.  Everything goes out at once (preface, settings, headers, the empty
message), so that it arrives also where no answer comes back, which is what has to be proved.

Trap: what the server sends first is its settings, before it has read the call; only the end of the
call's own stream is an answer.  Reference: RFC 9113 (HTTP/2), RFC 7541 (HPACK), gRPC over HTTP/2.
"""

from __future__ import annotations

from collections.abc import Callable

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS = 0x0, 0x1, 0x4
_END_STREAM, _END_HEADERS = 0x1, 0x4
_STREAM = 1  # the first of a client
_FRAME_HEAD = 9  # bytes before a frame's payload: length, kind, flags, stream
# HPACK: ":method POST" and ":scheme http" by index; the rest as literals, never Huffman-coded.
_METHOD_AND_SCHEME, _PATH, _AUTHORITY = b"\x83\x86", 4, 1
_EMPTY_MESSAGE = b"\0\0\0\0\0"  # not compressed, length 0


def request(path: str) -> bytes:
    """All bytes of one call of the method at ``path`` with an empty message."""
    headers = _METHOD_AND_SCHEME
    headers += bytes([_PATH]) + _text(path) + bytes([_AUTHORITY]) + _text("lockhavoc")
    for name, value in (("content-type", "application/grpc"), ("te", "trailers")):
        headers += b"\0" + _text(name) + _text(value)
    return (
        _PREFACE
        + _frame(_SETTINGS, 0, 0, b"")
        + _frame(_HEADERS, _END_HEADERS, _STREAM, headers)
        + _frame(_DATA, _END_STREAM, _STREAM, _EMPTY_MESSAGE)
    )


def await_end(receive: Callable[[], bytes]) -> bool:
    """Reads until the call has ended, whatever its status; False if the connection ended before.

    receive: the next bytes, b"" at the end.
    """
    buffer = b""
    while True:
        while len(buffer) >= _FRAME_HEAD:
            size = int.from_bytes(buffer[:3], "big")
            if len(buffer) < _FRAME_HEAD + size:
                break
            flags, stream = buffer[4], int.from_bytes(buffer[5:9], "big")
            if stream == _STREAM and flags & _END_STREAM:
                return True
            buffer = buffer[_FRAME_HEAD + size :]
        data = receive()
        if not data:
            return False
        buffer += data


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return head + payload


def _text(text: str) -> bytes:
    """A literal of fewer than 127 bytes."""
    return bytes([len(text)]) + text.encode()
