"""What a worker is told of the servers."""

from __future__ import annotations

from harness.stage import nodes_of

ENDS = [
    {"name": f"etcd{number}", "host": "127.0.0.1", "port": 40000 + number} for number in (1, 2, 3)
]


def test_clients_are_spread_over_the_nodes_and_each_knows_all() -> None:
    for worker in range(7):
        told = nodes_of(ENDS, worker)
        assert [node["own"] for node in told] == [at == worker % 3 for at in range(3)]
        assert [{k: v for k, v in node.items() if k != "own"} for node in told] == ENDS
    assert nodes_of(ENDS[:1], 5) == [{**ENDS[0], "own": True}]
    assert nodes_of([], 0) == []
