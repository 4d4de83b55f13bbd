"""One lock whose settings lie in several files; names that are followed, and where that ends."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from checkers.audit import audit
from checkers.audit.model import Record

DAY = datetime.date(2026, 11, 30)


def judged(folder: Path, **files: str) -> Record:
    for name, text in files.items():
        name = name.replace("__", ".")
        (folder / name).write_text(text)
    return audit([folder], as_of=DAY)


def rules(record: Record) -> list[tuple[str, str, int]]:
    return [(f.rule, Path(f.path).name, f.line) for f in record.findings]


WORKER = """\
import time
import redis
from settings import LOCK_TTL
r = redis.Redis()
def work():
    with r.lock("a", timeout=LOCK_TTL):
        time.sleep(30)
"""


def test_a_constant_of_another_file_decides(tmp_path: Path) -> None:
    record = judged(tmp_path, worker__py=WORKER, settings__py="LOCK_TTL = 10\n")
    assert rules(record) == [("A-LEASE-4", "worker.py", 7)]


def test_a_longer_lease_in_the_other_file_does_not(tmp_path: Path) -> None:
    record = judged(tmp_path, worker__py=WORKER, settings__py="LOCK_TTL = 6 * 10\n")
    assert rules(record) == []


def test_a_constant_that_cannot_be_found_is_no_lease_of_none(tmp_path: Path) -> None:
    record = judged(tmp_path, worker__py=WORKER)
    assert rules(record) == []
    assert record.dimensions["lease"].status == "unknown"


def test_a_constant_that_is_set_twice_stands_for_nothing(tmp_path: Path) -> None:
    both = "import sys\nLOCK_TTL = 10\nif sys.argv:\n    LOCK_TTL = 60\n"
    assert rules(judged(tmp_path, worker__py=WORKER, settings__py=both)) == []


def test_the_env_file_beats_the_default_in_the_code(tmp_path: Path) -> None:
    settings = 'import os\nLOCK_TTL = int(os.environ.get("TTL", "60"))\n'
    assert rules(judged(tmp_path, worker__py=WORKER, settings__py=settings)) == []
    record = judged(tmp_path, worker__py=WORKER, settings__py=settings, app__env="TTL=5\n")
    assert rules(record) == [("A-LEASE-4", "worker.py", 7)]


@pytest.mark.parametrize(
    "lock",
    [
        'c.lock("a")',
        'redis.lock.Lock(c, "a")',
        'm.Redis().lock("a", timeout=None)',
        'get("a")',
    ],
)
def test_aliases_and_wrappers_are_followed(tmp_path: Path, lock: str) -> None:
    source = f"""\
import redis
import redis as m
c = m.Redis()
def get(name, ttl=None):
    return c.lock(name, timeout=ttl)
def work():
    with {lock}:
        print()
"""
    found = rules(judged(tmp_path, app__py=source))
    line = 5 if lock.startswith("get") else 7
    assert ("A-LEASE-1", "app.py", line) in found


def test_eviction_counts_only_where_redis_keeps_locks(tmp_path: Path) -> None:
    conf = "maxmemory 1gb\nmaxmemory-policy volatile-lru\n"
    cache = "import redis\nredis.Redis().set('page', 'x', ex=60)\n"
    assert rules(judged(tmp_path, redis__conf=conf, app__py=cache)) == []
    lock = "import redis\nwith redis.Redis().lock('a', timeout=9):\n    pass\n"
    record = judged(tmp_path, redis__conf=conf, app__py=lock)
    assert rules(record) == [("A-CFG-1", "redis.conf", 2)]


LOCKS = """\
import psycopg
def work(dsn):
    with psycopg.connect(dsn) as c:
        c.execute("SELECT pg_advisory{}_lock(1)")
"""


def test_a_transaction_pooler_and_a_session_lock_do_not_go_together(tmp_path: Path) -> None:
    pooler = "[pgbouncer]\npool_mode = transaction\n"
    record = judged(tmp_path, pgbouncer__ini=pooler, app__py=LOCKS.format(""))
    assert rules(record) == [("A-CFG-3", "pgbouncer.ini", 2)]
    record = judged(tmp_path, pgbouncer__ini=pooler, app__py=LOCKS.format("_xact"))
    assert rules(record) == []


def test_a_lock_that_is_handed_to_the_caller_is_not_left_taken(tmp_path: Path) -> None:
    source = """\
import redis
r = redis.Redis()
def take():
    lock = r.lock("a", timeout=9)
    if not lock.acquire(blocking=False):
        return None
    if not healthy():
        lock.release()
        return None
    return lock
def healthy():
    return print("x")
"""
    assert rules(judged(tmp_path, app__py=source)) == []


def test_a_lock_that_is_taken_twice_has_two_sections(tmp_path: Path) -> None:
    source = """\
from kazoo.client import KazooClient
lock = KazooClient().Lock("/a")
def twice():
    lock.acquire()
    lock.release()
    lock.acquire()
    print("work")
    lock.release()
"""
    assert rules(judged(tmp_path, app__py=source)) == [("A-REL-1", "app.py", 6)]


def test_a_parameter_that_is_set_again_is_no_constant(tmp_path: Path) -> None:
    source = """\
import uuid
class Lock:
    def acquire(self, token=None):
        if token is None:
            token = uuid.uuid1().hex
        return self.do_acquire(token)
    def do_acquire(self, token):
        return self.redis.set(self.name, token, nx=True, px=1000)
"""
    assert rules(judged(tmp_path, app__py=source)) == []
