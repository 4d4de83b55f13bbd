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


GUARDED = """\
import threading
GUARD = threading.Lock()
def book(c, seat):
    with GUARD:
        c.execute("UPDATE seats SET taken = true WHERE id = %s", (seat,))
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("compose__yaml", "services:\n  web:\n    image: shop\n    deploy:\n      replicas: {}\n"),
        ("compose__yml", "services:\n  web:\n    image: shop\n    command: gunicorn -w {} shop\n"),
        ("gunicorn__conf__py", "workers = {}\n"),
        ("Procfile", "web: gunicorn --workers {} shop.wsgi\n"),
        (
            "deploy__yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\n"
            "spec: {{replicas: {}, template: {{spec: {{containers: [{{image: a}}]}}}}}}\n",
        ),
    ],
)
def test_a_lock_of_one_process_counts_where_several_run(
    tmp_path: Path, name: str, text: str
) -> None:
    record = judged(tmp_path, app__py=GUARDED, **{name: text.format(3)})
    assert rules(record) == [("A-ID-8", "app.py", 4)]
    record = judged(tmp_path, app__py=GUARDED, **{name: text.format(1)})
    assert rules(record) == []


def test_lease_in_settings_renewal_in_yaml_and_eviction_in_compose_meet(tmp_path: Path) -> None:
    record = judged(
        tmp_path,
        settings__py="LOCK_LEASE_SECONDS = 10\n",
        worker__yaml="lock:\n  renew_interval: 8s\n",
        app__py="import redis\nwith redis.Redis().lock('a', timeout=9):\n    pass\n",
        compose__yaml="services:\n  r:\n    image: redis:8\n    command:\n      - redis-server\n"
        "      - --maxmemory=1gb\n      - --maxmemory-policy=volatile-ttl\n",
    )
    assert rules(record) == [("A-CFG-1", "compose.yaml", 7), ("A-LEASE-4", "worker.yaml", 2)]
    (timing,) = [f for f in record.findings if f.rule == "A-LEASE-4"]
    assert "settings.py:1" in timing.says


def test_a_token_counter_without_persistence_begins_again(tmp_path: Path) -> None:
    source = """\
import redis
r = redis.Redis()
def work():
    with r.lock("lock:a", timeout=9):
        print(r.incr("fence:a"))
"""
    conf = 'appendonly no\nsave ""\n'
    record = judged(tmp_path, app__py=source, redis__conf=conf)
    assert ("A-FENCE-2", "app.py", 5) in rules(record)
    record = judged(tmp_path, app__py=source, redis__conf="appendonly yes\n")
    assert rules(record) == []


def test_a_cache_beside_a_store_of_locks_may_evict(tmp_path: Path) -> None:
    both = """\
services:
  cache:
    image: redis:8
    command: redis-server --maxmemory 1gb --maxmemory-policy allkeys-lru
  locks:
    image: redis:8
    command: redis-server --maxmemory 1gb --maxmemory-policy {}
"""
    assert rules(judged(tmp_path, compose__yaml=both.format("noeviction"))) == []
    record = judged(tmp_path, compose__yaml=both.format("volatile-lru"))
    assert [rule for rule, _, _ in rules(record)] == ["A-CFG-1", "A-CFG-1"]
