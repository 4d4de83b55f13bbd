"""Histories on which monitor, online form, engine and oracle once disagreed, shrunk by the fuzzer.

Nearly all of them have a process that ends one operation and begins another at the same instant:
times alone call the two concurrent, line order says they are not.
"""

from __future__ import annotations

import pytest

from checkers.fuzz import answers, disagree, targets
from checkers.fuzz_draw import Act, intervals_of

TARGETS = targets()


def ok(process: int, f: str, call: int, ret: int, **value: object) -> Act:
    return Act(process, f, call, ret, "ok", dict(value), dict(value))


def refused(process: int, f: str, call: int, ret: int, error: str, **value: object) -> Act:
    return Act(process, f, call, ret, "fail", dict(value), None, error)


def lost(process: int, f: str, call: int, **value: object) -> Act:
    return Act(process, f, call, None, "info", dict(value))


CASES: list[tuple[str, bool, list[Act]]] = [
    (
        "mutex",
        False,
        [
            ok(1, "acquire", 1, 3, hold="h2"),
            ok(2, "acquire", 6, 9, hold="h0"),
            ok(2, "release", 9, 9, hold="h2"),
        ],
    ),
    (
        "mutex",
        True,
        [
            ok(1, "acquire", 0, 3, hold="h0"),
            refused(1, "renew", 5, 6, "not-held", hold="h0"),
            lost(0, "release", 6, hold="h0"),
        ],
    ),
    (
        "mutex-owners",
        True,
        [
            ok(1, "acquire", 0, 1, owner="o1"),
            ok(3, "acquire", 1, 1, owner="o3"),
            lost(3, "release", 1, owner="o3"),
        ],
    ),
    (
        "lease",
        False,
        [
            ok(0, "acquire", 0, 0, hold="h0", ttl_ns=6),
            refused(0, "release", 0, 0, "not-held", hold="h0"),
        ],
    ),
    (
        "belief",
        True,
        [
            ok(3, "acquire", 1, 3, hold="h0"),
            ok(1, "acquire", 5, 8, hold="h1"),
            refused(3, "renew", 8, 11, "not-held", hold="h0"),
            refused(0, "release", 8, 14, "not-held", hold="h0"),
        ],
    ),
    (
        "semaphore",
        False,
        [
            lost(3, "acquire", 0, hold="h0"),
            ok(2, "acquire", 0, 2, hold="h1"),
            ok(0, "renew", 4, 8, hold="h0"),
            ok(0, "acquire", 9, 12, hold="h5"),
        ],
    ),
    (
        "mutex-busy",
        False,
        [
            ok(4, "acquire", 0, 3, hold="h1"),
            ok(4, "acquire", 4, 8, hold="h3"),
            ok(4, "release", 8, 8, hold="h1"),
        ],
    ),
    (
        "lease",
        False,
        [
            ok(0, "acquire", 19, 19),
            refused(0, "renew", 20, 25, "not-held"),
            lost(0, "release", 25),
        ],
    ),
    (
        "lease",
        True,
        [
            ok(1, "acquire", 0, 4),
            ok(0, "acquire", 13, 16, ttl_ns=6),
            lost(1, "acquire", 27, ttl_ns=13),
            ok(1, "renew", 30, 32),
        ],
    ),
    (
        "lease-drift",
        False,
        [
            ok(1, "acquire", 0, 2, hold="h1", ttl_ns=6),
            ok(1, "renew", 9, 15, hold="h1"),
            ok(0, "acquire", 11, 13, hold="h2", ttl_ns=6),
        ],
    ),
    (
        "lease-drift",
        False,
        [
            ok(0, "release", 0, 6, hold="h0"),
            ok(2, "acquire", 3, 4, hold="h2"),
            lost(1, "acquire", 6, hold="h0"),
        ],
    ),
    (
        "fenced",
        False,
        [
            ok(2, "acquire", 0, 3, hold="h0", token=0),
            lost(2, "release", 4, hold="h0", token=1),
            ok(0, "acquire", 8, 8, hold="h2", token=2),
        ],
    ),
    (
        "rwlock",
        True,
        [
            ok(0, "acquire", 0, 3, mode="write"),
            refused(0, "upgrade", 4, 5, "not-held"),
        ],
    ),
    (
        "rwlock",
        False,
        [
            ok(0, "acquire", 0, 1, mode="write"),
            ok(1, "acquire", 4, 8, mode="read"),
            ok(1, "renew", 8, 8),
            ok(1, "release", 8, 12),
        ],
    ),
    (
        "semaphore",
        False,
        [
            ok(1, "acquire", 6, 7, hold="h2"),
            ok(2, "acquire", 10, 10, hold="h5"),
            ok(0, "acquire", 6, 11, hold="h3"),
            ok(0, "release", 11, 11, hold="h2"),
            ok(0, "release", 11, 13, hold="h3"),
        ],
    ),
    (
        "store",
        False,
        [refused(1, "write", 5, 6, "stale", token=0), ok(1, "write", 6, 7, token=2)],
    ),
    (
        "store",
        True,
        [
            refused(1, "write", 0, 1, "stale", token=0),
            lost(1, "write", 1, token=2),
            lost(2, "write", 1, token=2),
        ],
    ),
    (
        "semaphore-anonymous",
        True,
        [ok(1, "release", 0, 2), lost(1, "acquire", 2), lost(2, "acquire", 2)],
    ),
    (
        "mutex-busy",  # three of process 3 at one instant: each after the one before, not the first
        False,
        [
            ok(0, "acquire", 0, 4, hold="h0"),
            ok(2, "acquire", 3, 6, hold="h4"),
            ok(3, "renew", 3, 6, hold="h4"),
            ok(0, "release", 4, 4, hold="h0"),
            ok(3, "acquire", 6, 6, hold="h6"),
            ok(3, "release", 6, 10, hold="h4"),
        ],
    ),
    (
        "mutex",  # two releases of one hold, and nobody knows of either
        True,
        [
            ok(0, "acquire", 0, 0, hold="h0"),
            lost(0, "release", 1, hold="h0"),
            ok(2, "acquire", 1, 1, hold="h3"),
            lost(1, "release", 2, hold="h0"),
            refused(1, "acquire", 4, 6, "gave-up", hold="h5"),
        ],
    ),
]


@pytest.mark.parametrize(("name", "legal", "acts"), CASES)
def test_all_agree_now(name: str, legal: bool, acts: list[Act]) -> None:
    found = answers(TARGETS[name], intervals_of(acts))
    assert found["oracle"] is legal
    assert not disagree(found), found
