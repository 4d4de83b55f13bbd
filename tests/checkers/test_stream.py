"""Online monitors: right on good and on broken long histories, and as the batch monitors say."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from checkers.fairness import bypasses
from checkers.generate import INJECTIONS, generate
from checkers.interchange import read_history
from checkers.models.base import LOCK_F
from checkers.monitors import belief, lease, mutex, resource
from checkers.monitors.span import by_key
from checkers.stream import Lines, check_stream
from checkers.validate import problems
from harness.core.errors import UserError
from harness.core.history import Op
from harness.core.result import Valid

TTL_NS = 60_000_000
SHOWS = {
    "double-grant": ("mutex", {"double-grant"}),
    "early-expiry": ("lease", {"double-grant", "early-takeover"}),
    "stale-token": ("fenced", {"token-inversion", "token-duplicate"}),
    "stale-write": ("store", {"stale-write-accepted"}),
    "lost-lock": ("lease", {"lost-lock"}),
    "late-release": ("lease", {"confirmed-after-its-end"}),
}


@pytest.mark.parametrize("info", [0.0, 0.02, 0.2])
@pytest.mark.parametrize("ttl_ns", [None, TTL_NS])
def test_no_false_alarm_on_a_right_service(tmp_path: Path, info: float, ttl_ns: int | None) -> None:
    path = tmp_path / "h.jsonl"
    made = generate(path, operations=3_000, seed=11, info=info, ttl_ns=ttl_ns)
    assert made.operations >= 3_000
    assert problems(read_history(path)) == []
    verdicts = check_stream(path)
    leased = () if ttl_ns is None else ("mutex", "fenced")  # those know no leases
    for name, verdict in verdicts.items():
        if name not in leased:
            assert verdict.valid is Valid.TRUE, (name, verdict.says)
    assert verdicts["fairness"].stats["grants"] > 500


@pytest.mark.parametrize("inject", INJECTIONS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_one_broken_rule_is_found_at_its_place(tmp_path: Path, inject: str, seed: int) -> None:
    path = tmp_path / "h.jsonl"
    ttl_ns = TTL_NS if inject == "early-expiry" else None
    made = generate(path, operations=3_000, seed=seed, inject=inject, ttl_ns=ttl_ns)
    assert made.injected is not None
    name, kinds = SHOWS[inject]
    verdict = check_stream(path)[name]
    assert verdict.valid is Valid.FALSE
    assert any(
        anomaly.kind in kinds and abs(max(anomaly.ops) - made.injected) < 200
        for anomaly in verdict.anomalies
    ), (verdict.anomalies, made)


@pytest.mark.parametrize("inject", [None, *INJECTIONS])
def test_online_and_batch_agree_on_long_histories(tmp_path: Path, inject: str | None) -> None:
    path = tmp_path / "h.jsonl"
    ttl_ns = TTL_NS if inject == "early-expiry" else None
    generate(path, operations=2_000, seed=5, info=0.1, inject=inject, ttl_ns=ttl_ns)
    ops = read_history(path).intervals()
    verdicts = check_stream(path)
    assert verdicts["mutex"].valid is mutex.check(ops).valid
    assert verdicts["fenced"].valid is mutex.check_fenced(ops).valid
    assert verdicts["lease"].valid is lease.check(ops, ttl_ns=ttl_ns, fenced=True).valid
    assert verdicts["belief"].valid is belief.check(ops, ttl_ns=ttl_ns, enforced=True).valid
    assert verdicts["store"].valid is resource.check(ops).valid


def test_the_generator_is_deterministic(tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    generate(first, operations=500, seed=3)
    generate(second, operations=500, seed=3)
    assert first.read_bytes() == second.read_bytes()


def test_memory_does_not_grow_with_the_history(tmp_path: Path) -> None:
    from checkers.online import Online

    sizes = []
    for operations in (2_000, 8_000):
        path = tmp_path / "h.jsonl"
        generate(path, operations=operations, seed=1, info=0.0)
        online = Online()
        most = 0
        for batch in Lines(path):
            online.feed(batch)
            queued = sum(len(x.queue) + len(x.moments) for x in online.locks.values())
            most = max(most, len(online.holds) + len(online.ended) + queued)
        sizes.append(most)
    assert max(sizes) < 60, sizes


@pytest.mark.parametrize("keys", [1, 4, 16])
def test_who_was_passed_by_is_counted_as_in_the_batch(tmp_path: Path, keys: int) -> None:
    rng = random.Random(keys)
    events: list[tuple[int, int, int, str, str, str]] = []
    for process in range(8):
        now = 0
        for number in range(200):
            hold, key = f"{process}-{number}", f"k{rng.randrange(keys)}"
            for f, longest in (("acquire", rng.choice((3, 30, 300))), ("release", 3)):
                end = now + rng.randint(1, longest)
                events.append((now * 8, process, 0, f, key, hold))
                events.append((end * 8, process, 1, f, key, hold))
                now = end + 1
    events.sort()
    path = tmp_path / "h.jsonl"
    with path.open("wb") as file:
        for index, (at, process, ends, f, key, hold) in enumerate(events):
            op = Op(
                index, at + process, process, "ok" if ends else "invoke", f, key, {"hold": hold}
            )
            file.write(msgspec.json.encode(op) + b"\n")
    grants = by_key(read_history(path).intervals(), LOCK_F, fails=True)
    passed = [n for spans in grants.values() for n in bypasses(spans)]
    stats = check_stream(path)["fairness"].stats
    assert stats["bypasses"] == sum(passed) > 0
    assert stats["bypass_max"] == max(passed)


def test_writes_that_overlap_are_judged_in_one_reading(tmp_path: Path) -> None:
    """What had been accepted when a write was asked for is known, though more was since."""
    path = tmp_path / "h.jsonl"
    generate(path, operations=2_500, seed=2, inject="double-grant", info=0.04)
    verdict = check_stream(path)["store"]
    assert verdict.valid is Valid.TRUE
    assert "read_again" not in verdict.stats


def test_malformed_and_torn_lines(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    generate(path, operations=50, seed=1)
    good = path.read_text()
    path.write_text(good + '{"index":9999,"ti')
    assert check_stream(path)["mutex"].stats["torn"] is True
    lines = good.splitlines(keepends=True)
    path.write_text("".join([*lines[:7], "{]\n", *lines[7:]]))
    with pytest.raises(UserError, match="line 8"):
        check_stream(path)
    path.write_text("".join([*lines[:7], *lines[8:]]))
    with pytest.raises(UserError):
        check_stream(path)
    path.write_text("".join([*lines[:3], lines[4], lines[3]]))
    with pytest.raises(UserError, match="must grow"):
        check_stream(path)


def test_nothing_is_unknown() -> None:
    for verdict in check_stream([]).values():
        assert verdict.valid is Valid.UNKNOWN
