"""Where ports come from."""

from __future__ import annotations

import os
import socket

import pytest

from compose.process_ports import FreePorts, listens, port_range


@pytest.mark.parametrize(
    ("ephemeral", "expected"),
    [
        ("32768\t60999\n", (10_000, 32_767)),
        ("1024 60999", (61_000, 65_535)),
        ("1024 65535", (10_000, 65_535)),
    ],
)
def test_ports_are_outside_the_ephemeral_range_where_there_is_room(
    ephemeral: str, expected: tuple[int, int]
) -> None:
    assert port_range(ephemeral) == expected


def test_each_port_is_given_once_and_is_free() -> None:
    ports = FreePorts()
    given = [ports.take() for _ in range(50)]
    assert len(set(given)) == 50
    with socket.create_server(("127.0.0.1", given[0])):
        assert listens(os.getpid(), given[0])
        assert not listens(os.getpid(), given[1])
        assert not listens(1 << 22, given[0])
    assert not listens(os.getpid(), given[0])
