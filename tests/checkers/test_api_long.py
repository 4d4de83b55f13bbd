"""Long files: the stream says what judging the whole file says, and names the same events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkers import long
from checkers.generate import INJECTIONS, generate
from checkers.interchange import read_history
from harness.core.errors import UserError
from harness.core.result import Result, Valid
from harness.judge_file import judge_file

TTL_MS = 50.0
MODELS: dict[str, dict[str, Any]] = {
    "mutex": {},
    "fenced": {},
    "store": {},
    "lease": {"ttl_ms": TTL_MS},
    "belief": {"ttl_ms": TTL_MS},
}


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as long from ten events on."""
    monkeypatch.setattr(long, "STREAM_EVENTS_MIN", 10)


def made(tmp_path: Path, inject: str | None) -> Path:
    path = tmp_path / "h.jsonl"
    leased = inject == "early-expiry"
    options: dict[str, Any] = {"ttl_ns": int(TTL_MS * 1e6)} if leased else {}
    generate(path, operations=2000, seed=3, inject=inject, **options)
    return path


def both(path: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Result, Result]:
    """(in a stream, as a whole)."""
    options = MODELS[model]
    monkeypatch.setattr(long, "STREAM_EVENTS_MIN", 10)
    streamed, _ = judge_file(path, model, **options)
    monkeypatch.setattr(long, "STREAM_EVENTS_MIN", 1 << 40)
    whole, _ = judge_file(path, model, **options)
    return streamed, whole


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("inject", [None, *INJECTIONS])
def test_stream_and_whole_agree(
    tmp_path: Path, model: str, inject: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(tmp_path, inject)
    streamed, whole = both(path, model, monkeypatch)
    assert streamed.valid is whole.valid
    if whole.valid is Valid.FALSE:
        assert streamed.anomalies
        assert {a.kind for a in streamed.anomalies} & {a.kind for a in whole.anomalies}
        assert streamed.anomalies[0].picture
        known = {op.index for op in read_history(path)}
        assert set(streamed.anomalies[0].ops) <= known


def test_the_stream_is_used_only_for_long_files(tmp_path: Path) -> None:
    path = made(tmp_path, None)
    assert not long.is_long(path)
    assert judge_file(path, "mutex")[0].stats["decided_by"] == "monitor"


@pytest.mark.usefixtures("short")
def test_who_decided_is_said(tmp_path: Path) -> None:
    path = made(tmp_path, None)
    assert long.is_long(path)
    assert judge_file(path, "mutex")[0].stats["decided_by"] == "online monitor"
    assert judge_file(path, "mutex", engine="monitor")[0].stats["decided_by"] == "monitor"
    lease = judge_file(path, "lease", ttl_ms=1e6)[0]
    parts = {part.checker: part.valid for part in lease.sub}
    assert parts["safe"] is Valid.TRUE
    assert parts["exact"] is Valid.UNKNOWN
    assert "--engine monitor" in lease.sub[1].stats["missing"]


@pytest.mark.usefixtures("short")
def test_lines_are_found_again(tmp_path: Path) -> None:
    path = made(tmp_path, "double-grant")
    result, code = judge_file(path, "mutex")
    assert code == 1
    lines = long.lines_of(path, result.anomalies[0].ops)
    text = path.read_text().splitlines()
    assert set(lines) == set(result.anomalies[0].ops)
    for index, line in lines.items():
        assert json.loads(text[line - 1])["index"] == index
    assert long.lines_of(path, []) == {}


@pytest.mark.parametrize("inject", [None, *INJECTIONS])
def test_all_locks_in_one_pass(tmp_path: Path, inject: str | None) -> None:
    path = made(tmp_path, inject)
    ttl_ms = TTL_MS if inject == "early-expiry" else None
    found, code = judge_file(path, "all-locks", ttl_ms=ttl_ms)
    assert found.valid is (Valid.TRUE if inject is None else Valid.FALSE)
    assert code == (0 if inject is None else 1)
    assert {part.checker for part in found.sub} == set(long.STREAMED)


def test_all_locks_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    path = made(tmp_path, None)
    with pytest.raises(UserError, match="choose one model"):
        judge_file(path, "all-locks", export_edn=tmp_path / "x.edn")
    edn = tmp_path / "h.edn"
    edn.write_text("")
    with pytest.raises(UserError, match="reads JSON lines"):
        judge_file(edn, "all-locks")
    with pytest.raises(UserError, match="has no option k"):
        judge_file(path, "all-locks", k=2)
