"""A TCP relay on loopback that can swallow one reply: the request arrives, the answer does not."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


class Relay:
    """Forwards bytes both ways; after ``cut_reply(word)`` the answer to the first request that
    contains ``word`` is read from the server, thrown away, and the connection closed."""

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._word: bytes | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cuts = 0
        self._cutting: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_reply(self, word: bytes) -> None:
        self._word = word

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        """Request by request: Redis clients wait for an answer before they go on."""
        with (
            client,
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self._upstream)) as server,
        ):
            back = threading.Thread(target=self._back, args=(server, client), daemon=True)
            back.start()
            while data := client.recv(1 << 16):
                if self._word is not None and self._word in data:
                    self._cutting.add(server)
                    self._word = None
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)
            back.join()

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                if server in self._cutting:
                    self._cutting.discard(server)
                    self.cuts += 1
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def relay_to(port: int) -> Iterator[Relay]:
    relay = Relay(port)
    try:
        yield relay
    finally:
        relay.close()
