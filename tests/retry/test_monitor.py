"""Monitors and replay on records with a known answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clients.retry.facts import Settings
from clients.retry.gate import Asked, ask
from clients.retry.loop import RetryLoop
from clients.retry.model import Context
from clients.retry.monitor import as_prometheus, as_text, jain, monitor, quantile
from clients.retry.record import JsonLines, Request, read_records
from clients.retry.replay import replay
from clients.retry.waiting import Options, rules
from harness.core.clock import NS_PER_MS, NS_PER_S, VirtualClock
from tests.retry.test_command import lockhavoc


def end(requester: str, began_ms: int, at_ms: int, outcome: str = "acquired") -> dict[str, Any]:
    return {
        "kind": "outcome", "lock": "a", "requester": requester, "id": requester, "attempts": 2,
        "outcome": outcome, "began_ns": began_ms * NS_PER_MS, "at_ns": at_ms * NS_PER_MS,
    }  # fmt: skip


def tried(requester: str, at_ms: float) -> dict[str, Any]:
    at_ns = round(at_ms * NS_PER_MS)
    return {"kind": "decision", "lock": "a", "requester": requester, "at_ns": at_ns}


def only(records: list[dict[str, Any]]) -> dict[str, Any]:
    (lock,) = monitor(records)["locks"]
    assert isinstance(lock, dict)
    return lock


def test_the_one_that_all_others_pass_is_starved() -> None:
    records = [end("slow", 0, 1_000)] + [end(f"w{n}", 10 + n, 20 + n * 10) for n in range(5)]
    lock = only(records)
    assert [(s["requester"], s["passed_by"]) for s in lock["starved"]] == [("slow", 5)]
    assert lock["wait_ms"]["max"] == 1_000
    fair = [end(f"w{n}", n, n + 100) for n in range(6)]
    assert only(fair)["starved"] == []
    assert only(fair)["jain"] == pytest.approx(1)


def test_herds_are_clients_not_attempts() -> None:
    assert only([tried(f"w{n}", n) for n in range(9)])["largest_herd"] == 9
    assert only([tried(f"w{n}", n * 50) for n in range(9)])["largest_herd"] == 1
    assert only([tried("w", n) for n in range(9)])["largest_herd"] == 1


def test_escalated_again_and_again() -> None:
    records = [end(f"w{n}", 0, 9, "escalated") for n in range(3)]
    assert only(records)["deadlock_review"]
    assert not only(records[1:])["deadlock_review"]
    assert "look for a deadlock" in as_text(monitor(records))


def test_figures() -> None:
    assert jain([1, 1, 1]) == 1
    assert jain([0, 0, 5]) == pytest.approx(1 / 3)
    assert [quantile([1, 2, 3, 4], q) for q in (0.5, 0.99, 1)] == [2, 4, 4]


def test_prometheus_escapes_names() -> None:
    record = end("w", 0, 5) | {"lock": 'a"b\\c\nd'}
    text = as_prometheus(monitor([record]))
    assert 'lockhavoc_retry_requests_total{lock="a\\"b\\\\c\\nd",outcome="acquired"} 1' in text
    assert "\nd" not in text


def recorded(path: Path, **more: Any) -> list[dict[str, Any]]:
    clock = VirtualClock()

    def sleep(seconds: float) -> None:
        clock.sleep_until(clock.now() + round(seconds * NS_PER_S))

    options = Options(clock=clock, log=JsonLines(path), **more)
    wanted = Request("orders", "w1", budget_ms=9_000, ttl_ms=1_300, seed=3)
    acquire = lambda: clock.now() > 2 * NS_PER_S  # noqa: E731 - shorter than a function here
    RetryLoop(wanted, acquire, options=options, sleep=sleep).run()
    return read_records(path)


def test_replay_repeats_every_decision_and_sees_changes(tmp_path: Path) -> None:
    records = recorded(tmp_path / "log.jsonl")
    again = replay(records, rules)
    assert (again["same"], again["different"], again["changed"]) == (len(records) - 1, 0, 0)
    assert again["same"] > 1
    records[0]["context"]["max_wait_budget_seconds"] = 1
    assert replay(records, rules)["changed"] == 1

    def other(context: Context, settings: Settings) -> Asked:
        return ask(context, lambda *_: b"no", settings)

    tried_other = replay(records[1:], other)
    assert tried_other["sources"] == {"default": again["same"] - 1}
    assert tried_other["different"] == again["same"] - 1


def test_replay_uses_the_settings_that_were_used(tmp_path: Path) -> None:
    settings = Settings(floor_ms=200, base_ms=700)
    records = recorded(tmp_path / "log.jsonl", settings=settings)
    again = replay(records, rules)
    assert (again["different"], again["same"] > 0) == (0, True)
    assert records[0]["decision"]["retry_after_ms"] >= 700


def test_commands(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    recorded(file)
    done = lockhavoc("retry", "replay", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 different" in done.stdout
    other = ("--decider", "command", "--command", "false", "--json")
    done = lockhavoc("retry", "replay", str(file), *other)
    assert json.loads(done.stdout)["different"] > 0
    assert "orders: 1 acquired" in lockhavoc("retry", "monitor", str(file)).stdout
    done = lockhavoc("retry", "monitor", str(file), "--format", "prometheus")
    assert 'requests_total{lock="orders",outcome="acquired"} 1' in done.stdout
    assert lockhavoc("retry", "monitor", str(tmp_path / "none")).returncode == 254
