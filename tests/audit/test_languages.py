"""Other languages than Python: what is followed in them, what is silence, and what is said when."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkers.audit import audit
from checkers.audit.knowledge_code import CODE_LIBRARIES
from checkers.audit.languages import grammars, sql
from checkers.audit.model import Record
from tests.audit.test_samples import CORRECTED, FAULTY, LOOK_ALIKES

DAY = datetime.date(2026, 11, 30)
LANGUAGES = {".js", ".ts", ".go", ".java", ".rb", ".lua", ".sql"}


def judged(folder: Path, **files: str) -> Record:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return audit([folder], as_of=DAY)


def rules(record: Record) -> list[tuple[str, str, int]]:
    return [(f.rule, Path(f.path).name, f.line) for f in record.findings]


def test_every_language_has_its_pairs_and_a_look_alike() -> None:
    for suffix in LANGUAGES:
        family = {".js", ".ts"} if suffix in (".js", ".ts") else {suffix}
        assert sum(p.suffix in family for p in FAULTY) >= 4, suffix
        assert any(p.suffix in family for p in LOOK_ALIKES), suffix


@pytest.mark.parametrize(
    "path", [p for p in CORRECTED if p.suffix in LANGUAGES], ids=lambda p: p.name
)
def test_a_corrected_twin_is_about_locks(path: Path) -> None:
    record = audit([path], as_of=DAY)
    assert not record.unread
    # A function that asks pg for the answer in an IF shows nothing to this reader.
    if path.name != "a-id-6-perform-try-lock.corrected.sql":
        assert [file.status for file in record.files] == ["no_gap"]


GO = """\
package jobs

import "github.com/go-redsync/redsync/v4"

func Work(rs *redsync.Redsync) error {
	mutex := rs.NewMutex("a", redsync.WithExpiry(LockTTL))
	if err := mutex.Lock(); err != nil {
		return err
	}
	defer mutex.Unlock()
	time.Sleep(30 * time.Second)
	return nil
}
"""
RB = """\
require "redlock"
class Job
  def run
    lm = Redlock::Client.new
    lm.lock("a", Settings::LOCK_MS) do |held|
      return unless held
      sleep 30
    end
  end
end
"""
TS = """\
import Redlock from "redlock";
import { LOCK_MS as ttl } from "./settings";
const redlock = new Redlock([]);
export async function run() {
  const lock = await redlock.acquire(["a"], ttl);
  try {
    await new Promise((resolve) => setTimeout(resolve, 30_000));
  } finally {
    await lock.release();
  }
}
"""
JAVA = """\
import org.redisson.api.RLock;
class Job {
  void run(RLock lock) throws Exception {
    lock.lock(Settings.LOCK_S, TimeUnit.SECONDS);
    try {
      TimeUnit.MINUTES.sleep(1);
    } finally {
      lock.unlock();
    }
  }
}
"""
SETTINGS = [
    ("job.go", GO, "settings.go", "package jobs\n\nconst LockTTL = %s * time.Second\n", 11),
    ("job.rb", RB, "settings.rb", "module Settings\n  LOCK_MS = %s * 1000\nend\n", 7),
    ("job.ts", TS, "settings.ts", "export const LOCK_MS = %s * 1000;\n", 7),
    ("Job.java", JAVA, "Settings.java",
     "class Settings {\n  static final long LOCK_S = %s;\n}\n", 6),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "other", "settings", "line"), SETTINGS)
def test_a_constant_of_another_file_decides(
    tmp_path: Path, name: str, text: str, other: str, settings: str, line: int
) -> None:
    (tmp_path / name).write_text(text)
    assert rules(audit([tmp_path], as_of=DAY)) == [], "not known is not short"
    (tmp_path / other).write_text(settings % "10")
    assert rules(audit([tmp_path], as_of=DAY)) == [("A-LEASE-4", name, line)]
    (tmp_path / other).write_text(settings % "600")
    assert rules(audit([tmp_path], as_of=DAY)) == []


def test_the_env_file_beats_the_default_in_the_code(tmp_path: Path) -> None:
    source = TS.replace('import { LOCK_MS as ttl } from "./settings";\n', "").replace(
        "const redlock", "const ttl = Number(process.env.LOCK_TTL_MS || 60000);\nconst redlock"
    )
    assert rules(judged(tmp_path, job__ts=source)) == []
    record = judged(tmp_path, job__ts=source, app__env="LOCK_TTL_MS=5000\n")
    assert rules(record) == [("A-LEASE-4", "job.ts", 7)]


SILENT = {
    "a lock that the caller gets.go": """\
package a
import "github.com/bsm/redislock"
func Take(ctx context.Context, c *redislock.Client) (*redislock.Lock, error) {
	lock, err := c.Obtain(ctx, "a", time.Minute, nil)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		lock.Release(ctx)
		return nil, ctx.Err()
	}
	return lock, nil
}
""",
    "each way out releases.go": """\
package a
import "github.com/go-redsync/redsync/v4"
func Work(m *redsync.Mutex) error {
	if err := m.Lock(); err != nil {
		return err
	}
	if !ready() {
		m.Unlock()
		return errNotReady
	}
	m.Unlock()
	return nil
}
""",
    "the mutex of sync beside redsync.go": """\
package a
import ("sync"; "github.com/go-redsync/redsync/v4")
type T struct { mu sync.Mutex; rs *redsync.Redsync }
func (t *T) Count() { t.mu.Lock(); t.n++; t.mu.Unlock() }
""",
    "a promise with finally.js": """\
const Redlock = require("redlock");
const redlock = new Redlock([client]);
async function run() {
  const lock = await redlock.acquire(["a"], 1000);
  return work().finally(() => lock.release());
}
""",
    "released in catch and after.js": """\
const { default: Redlock } = require("redlock");
async function run(redlock) {
  const lock = await redlock.acquire(["a"], 1000);
  try {
    await work();
  } catch (error) {
    await lock.release();
    throw error;
  }
  await lock.release();
}
""",
    "a lease that is spread.js": """\
async function run(redis, options) {
  const taken = await redis.set("lock:a", uuid(), { NX: true, ...options });
  if (!taken) return;
  await work();
}
""",
    "looked at by equals.java": """\
import org.redisson.api.*;
class A {
  boolean run(RedissonClient c) {
    RLock lock = c.getLock("a");
    boolean got = lock.tryLock();
    if (!got) { throw new IllegalStateException("busy"); }
    try { work(); return true; } finally { if (lock.isHeldByCurrentThread()) lock.unlock(); }
  }
}
""",
    "another type of lock beside Redisson.java": """\
import org.redisson.api.*;
import java.util.concurrent.locks.ReentrantLock;
class A {
  private final ReentrantLock lock = new ReentrantLock();
  void run() { lock.lock(); work(); lock.unlock(); }
  void reactive(RLockReactive lock) { lock.tryLock(); }
}
""",
    "the answer is the method's.rb": """\
require "redis"
class A
  def take(redis, token)
    redis.set("lock:a", token, nx: true, ex: 30)
  end
end
""",
    "a wrapper for any key.java": """\
class RedisLockTemplate {
  boolean setIfAbsent(String key, String value) {
    return redis.opsForValue().setIfAbsent(key, value, Duration.ofSeconds(3));
  }
  void delete(String key) { redis.delete(key); }
}
""",
    "a script that compares a hash.lua": """\
-- lock of a thread
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
  return nil
end
redis.call('hincrby', KEYS[1], ARGV[2], -1)
redis.call('del', KEYS[1])
return 1
""",
    "a script that keeps its comparison in locals.lua": """\
local lock, job = KEYS[1], ARGV[1]
local holds = redis.call("HEXISTS", lock, job) == 1
if not holds then
  return nil
end
redis.call("UNLINK", lock)
return job
""",
    "SetArgs says no by its error.go": """\
package a
func Take(ctx context.Context, c *redis.Client) (bool, error) {
	err := c.SetArgs(ctx, lockKey("a"), uuid.NewString(), redis.SetArgs{TTL: ttl, Mode: "NX"}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}
""",
    "a helper sets the lease.rb": """\
class LockBase
  def acquire(redis)
    if redis.setnx("lock:a", SecureRandom.uuid)
      extend_lock!
      true
    end
  end
end
""",
    "rows are those that were locked.rb": """\
def lock(connection, ids)
  jobs = connection.execute("SELECT id FROM jobs WHERE pg_try_advisory_lock(id)")
  jobs.each { |job| work(job) }
end
def setup(connection)
  connection.execute("CREATE FUNCTION f() RETURNS bool AS $$ SELECT pg_try_advisory_lock(1) $$")
end
""",
    "a lock that is kept in a map.java": """\
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
class Registry {
  void acquire(String key) {
    InterProcessMutex mutex = new InterProcessMutex(client, key);
    try {
      mutex.acquire();
      held.put(key, mutex);
    } catch (Exception e) {
      mutex.release();
    }
  }
}
""",
    "a method of the file's own that is called like one of Rails.rb": """\
class Adapter
  def yield_with_lock(key)
    yield
  ensure
    release_advisory_lock(key)
    puts key
  end
end
""",
    "a block that expects what it is given.rb": """\
def check(redlock)
  redlock.lock("a", 3000) do |info|
    expect(info).to eql(false)
  end
end
""",
    "a lock that is taken again after its release.java": """\
import org.redisson.api.RLock;
class Counter {
  void count(RLock lock) {
    lock.lock();
    lock.unlock();
    log.info("between");
    lock.lock();
    lock.unlock();
  }
}
""",
    "expired rows are swept.sql": """\
CREATE TABLE job_locks (name text, owner text, expires_at timestamptz);
DELETE FROM job_locks WHERE expires_at < now();
UPDATE job_locks SET expires_at = now() WHERE name = 'a' AND owner = 'b';
""",
}


@pytest.mark.parametrize("name", SILENT)
def test_safe_forms_are_silence(tmp_path: Path, name: str) -> None:
    path = tmp_path / name.replace(" ", "-")
    path.write_text(SILENT[name])
    record = audit([path], as_of=DAY)
    assert not record.unread
    assert rules(record) == []


LOUD = {
    "an error of SetNX says nothing about who has it.go": ("A-ID-6", 3, """\
package a
func Run(ctx context.Context, rdb *redis.Client) error {
	if err := rdb.SetNX(ctx, "lock:a", uuid.NewString(), time.Minute).Err(); err != nil {
		return err
	}
	return work()
}
"""),
    "redigo.go": ("A-LEASE-1", 3, """\
package a
func Take(conn redis.Conn) (bool, error) {
	answer, err := redis.String(conn.Do("SET", "lock:a", xid.New().String(), "NX"))
	return answer == "OK", err
}
"""),
    "a raw command.js": ("A-LEASE-3", 2, """\
async function take(redis) {
  const ok = await redis.call("SET", "lock:a", nanoid(), "NX", "PX", 30);
  return ok === "OK";
}
"""),
    "unlock by any caller.java": ("A-ID-1", 8, """\
class RedisLock {
  boolean lock(String key) {
    Boolean ok = redis.opsForValue().setIfAbsent(key, UUID.randomUUID().toString(), 30,
        TimeUnit.SECONDS);
    return Boolean.TRUE.equals(ok);
  }
  void unlock(String key) {
    redis.delete(key);
  }
}
"""),
    "the cache of Rails.rb": ("A-ID-6", 3, """\
class A
  def run
    Rails.cache.write("lock:a", SecureRandom.uuid, unless_exist: true, expires_in: 30.seconds)
    work
  end
end
"""),
    "renewed by a timer.js": ("A-LEASE-4", 5, """\
import Redlock from "redlock";
const redlock = new Redlock(clients);
export async function lead() {
  const lock = await redlock.acquire(["leader"], 10000);
  setInterval(async () => { await lock.extend(10000); }, 8000);
}
"""),
    "a lock that the planner takes.ts": ("A-REL-7", 2, """\
export async function next(db: Pool, state: string) {
  const { rows } = await db.query(
    `SELECT id FROM jobs WHERE state = $1 AND pg_try_advisory_lock(id) ORDER BY id LIMIT 1`,
    [state],
  );
  return rows[0];
}
"""),
    "swallowed.rb": ("A-REL-4", 7, """\
require "redlock"
def run(redlock)
  info = redlock.lock("a", 3000) or return
  begin
    work
  ensure
    redlock.unlock(info) rescue nil
  end
end
"""),
}  # fmt: skip


@pytest.mark.parametrize("name", LOUD)
def test_forms_of_clients_are_known(tmp_path: Path, name: str) -> None:
    rule, line, text = LOUD[name]
    path = tmp_path / name.replace(" ", "-")
    path.write_text(text)
    assert rules(audit([path], as_of=DAY)) == [(rule, path.name, line)]


@pytest.fixture
def _no_grammars(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def gone(name: str) -> object:
        raise ImportError(name)

    grammars._parser.cache_clear()
    monkeypatch.setattr(grammars.importlib, "import_module", gone)
    monkeypatch.setattr(sql.importlib, "import_module", gone)
    yield
    grammars._parser.cache_clear()


@pytest.mark.usefixtures("_no_grammars")
@pytest.mark.parametrize("name", ["job.go", "Job.java", "job.ts", "job.rb", "unlock.lua", "a.sql"])
def test_without_the_extra_a_file_about_locks_says_what_to_install(
    tmp_path: Path, name: str
) -> None:
    text = {"job.go": GO, "Job.java": JAVA, "job.ts": TS, "job.rb": RB}.get(name, "")
    (tmp_path / name).write_text(text or "-- lock\nredis.call('del', KEYS[1]) -- locks")
    record = audit([tmp_path], as_of=DAY)
    (unread,) = record.unread
    assert Path(unread.path).name == name
    assert "pip install 'lockhavoc[audit]'" in unread.why
    assert record.verdict == "UNKNOWN"


@pytest.mark.usefixtures("_no_grammars")
def test_without_the_extra_python_is_read_as_before(tmp_path: Path) -> None:
    source = 'import redis\nwith redis.Redis().lock("a"):\n    pass\n'
    record = judged(tmp_path, job__py=source, other__go="package main\n")
    assert rules(record) == [("A-LEASE-1", "job.py", 2)]
    assert not record.unread, "a file without a word about locks needs no grammar"


def test_what_is_not_in_its_language_is_not_judged(tmp_path: Path) -> None:
    record = judged(tmp_path, job__go=GO.replace("return nil\n}", "return nil\n"))
    (unread,) = record.unread
    assert "syntax" in unread.why
    assert not record.findings


def test_a_file_that_is_nested_too_deeply_is_listed_and_hurts_no_other(tmp_path: Path) -> None:
    deep = "x = " + "[" * 3000 + "]" * 3000 + "\n"
    record = judged(tmp_path, deep__rb="# lock ttl nx redlock\n" + deep, ttl__rb=deep, job__rb=RB)
    assert [Path(u.path).name for u in record.unread] == ["deep.rb"]
    assert "nested too deeply" in record.unread[0].why


def test_rows_of_the_table_can_be_found() -> None:
    for row in CODE_LIBRARIES.values():
        assert row.language in {"javascript", "go", "java", "ruby"}
        for method in (*row.acquires, *row.renews, *row.releases):
            assert method.args[0] <= method.args[1]
            assert method.lease_unit_ns in (1, 1_000_000, 1_000_000_000)
        assert bool(row.acquires) == (row.name != "ShedLock")
