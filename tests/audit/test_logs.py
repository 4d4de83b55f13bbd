"""Logs: who held what when, whatever format; lines that are none are counted; files are merged."""

from __future__ import annotations

import datetime
import gzip
from pathlib import Path

import pytest

from checkers.audit import audit
from checkers.audit.logs import Mapping, log_facts, read_mapping
from checkers.audit.logs.lines import ns_of, parse_time
from checkers.audit.logs.words import Event, Reader
from checkers.audit.model import Record
from harness.core.errors import UserError

DAY = datetime.date(2026, 11, 30)


def event(line: str, mapping: Mapping | None = None) -> Event | None:
    return Reader(mapping or Mapping()).event("app.log", 1, line, line.lower())


@pytest.mark.parametrize(
    ("line", "kind", "lock", "holder"),
    [
        ("2026-11-30 12:00:00,123 INFO redis_lock Got lock for 'lock:a'.", "acquired", "lock:a",
         "app.log"),
        ("2026-11-30 12:00:00,1 INFO Failed to acquire Lock('a').", "refused", "a", "app.log"),
        ("2026-11-30 12:00:00,1 DEBUG Refreshing Lock('a').", "renewed", "a", "app.log"),
        ("2026-11-30 12:00:00 DEBUG Locked 'report', lock will be held at most until 13:00",
         "acquired", "report", "app.log"),
        ("2026-11-30 12:00:00 DEBUG Unlocked 'report'", "released", "report", "app.log"),
        ("2026-11-30 12:00:00 DEBUG Not executing 'report'. It's locked.", "refused", "report",
         "app.log"),
        ("I1130 12:00:00.000000 1 leaderelection.go:258] successfully acquired lease kube/x",
         "acquired", "kube/x", "app.log"),
        ("E1130 12:00:00.000000 1 leaderelection.go:332] failed to renew lease kube/x: timed out",
         "lost", "kube/x", "app.log"),
        ("Nov  3 12:00:00 app-1 bill[7]: lock orders acquired", "acquired", "orders",
         "app-1/bill[7]"),
        ("<34>1 2026-11-30T12:00:00Z app-1 bill 7 - - lock orders released", "released", "orders",
         "app-1/bill[7]"),
        ('{"ts":1796040000,"event":"lock.acquire","key":"k","pod":"p1"}', "acquired", "k", "p1"),
        ('time=2026-11-30T12:00:00Z level=warn msg="lock lost" lock=k owner=p1', "lost", "k", "p1"),
        ("2026-11-30T12:00:00+01:00 LockNotOwnedError: lock 'k' is no longer owned by w1", "lost",
         "k", "w1"),
    ],
)  # fmt: skip
def test_words_of_libraries(line: str, kind: str, lock: str, holder: str) -> None:
    found = event(line)
    assert found is not None
    assert (found.kind, found.lock, found.holder) == (kind, lock, holder)


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-30 12:00:00 INFO failed to release lock orders: connection reset",
        "2026-11-30 12:00:00 INFO GET /blocks 200",
        "    at redis.lock.Lock.release(Lock.java:12)",
        '{"ts":"2026-11-30T12:00:00Z","msg":"block written"}',
    ],
)
def test_what_is_no_event_is_none(line: str) -> None:
    assert event(line) is None


def test_times_of_all_kinds_are_nanoseconds() -> None:
    second = 1_796_040_000
    for written in (second, float(second), second * 1_000, second * 10**6, second * 10**9):
        assert ns_of(written) == second * 10**9
    assert ns_of("2026-11-30T12:00:00Z") == ns_of("2026-11-30T13:00:00+01:00") == 1796040000 * 10**9
    assert parse_time("no time") is None
    assert ns_of("soon") is None
    assert ns_of(True) is None


def judged(folder: Path, **files: str) -> Record:
    for name, text in files.items():
        (folder / f"{name}.log").write_text(text)
    return audit([folder], as_of=DAY)


def rules(record: Record) -> list[tuple[str, str, int]]:
    return [(f.rule, Path(f.path).name, f.line) for f in record.findings]


HOUR = "2026-11-30T12:00"
A = f"{HOUR}:00Z lock a acquired holder=w1\n{HOUR}:{{}}Z lock a released holder=w1\n"
B = f"{HOUR}:05Z lock a acquired holder=w2\n{HOUR}:07Z lock a released holder=w2\n"


def test_files_of_several_hosts_are_merged_and_their_clocks_may_differ(tmp_path: Path) -> None:
    record = judged(tmp_path, one=A.format("09"), two=B)
    assert rules(record) == [("A-LOG-1", "two.log", 1)]
    (finding,) = record.findings
    assert "one.log" in finding.says
    record = judged(tmp_path, one=A.format("05.9"), two=B)
    assert rules(record) == [], "0.9 s may be the clocks"


def test_a_holder_that_died_is_no_overlap(tmp_path: Path) -> None:
    dies = A.splitlines(keepends=True)[0]
    assert rules(judged(tmp_path, one=dies, two=B)) == []


def test_lines_that_are_none_are_counted_and_harm_nothing(tmp_path: Path) -> None:
    noise = "\x00\xff what\n{broken\n" + '{"ts": []}\n{"lock": 1}\n' + "x" * (2 << 20) + "\n"
    path = tmp_path / "app.log"
    path.write_bytes(noise.encode("latin-1") + A.format("03").encode() + B.encode()[:-1])
    report = log_facts([path], Mapping())
    (unread,) = report.unread
    assert unread.why.startswith("4 lines")
    assert [(f.get("what"), f.place.line) for f in report.facts if f.kind == "log"] == []
    assert next(f.get("events") for f in report.facts if f.kind == "log-read") == 4


def test_packed_and_cut_files_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    text = A.format("09") + B
    lines = text.splitlines(keepends=True)
    whole = gzip.compress("".join(sorted(lines)).encode())
    (tmp_path / "app.log.gz").write_bytes(whole)
    record = audit([tmp_path], as_of=DAY)
    assert rules(record) == [("A-LOG-1", "app.log.gz", 2)]
    (tmp_path / "app.log.gz").write_bytes(whole[:-12])
    assert audit([tmp_path], as_of=DAY).files


def test_own_words_and_fields(tmp_path: Path) -> None:
    path = tmp_path / "map.toml"
    path.write_text(
        '[fields]\nlock = "thing"\nholder = "who"\n[events]\nacquired = "got the baton"\n'
        'released = "baton down"\n[lease]\nttl_ms = 5000\n'
    )
    mapping = read_mapping(path)
    found = event("2026-11-30 12:00:00 got the baton thing=x who=w1", mapping)
    assert found is not None
    assert (found.kind, found.lock, found.holder, found.ttl_ns) == (
        "acquired",
        "x",
        "w1",
        5 * 10**9,
    )


def test_a_mapping_with_mistakes_is_refused_with_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "map.toml"
    path.write_text('[fields]\nlok = "x"\n[events]\nacquired = "("\n[lease]\nttl_ms = "long"\n')
    with pytest.raises(UserError) as caught:
        read_mapping(path)
    assert len(caught.value.problems) == 3


def test_a_log_of_many_hits_lists_a_few_and_counts_the_rest(tmp_path: Path) -> None:
    lines = [
        f"2026-11-30 12:{n // 60:02}:{n % 60:02} lock a released holder=w{n}\n"
        for n in range(1, 50)
    ]
    record = judged(
        tmp_path, app="2026-11-30 12:00:00 lock a acquired holder=w0\n" + "".join(lines)
    )
    assert rules(record) == [("A-LOG-5", "app.log", n) for n in (2, 3, 4)]
    assert any("and 46 more" in f.says for f in record.findings)
