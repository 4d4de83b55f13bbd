"""Several users of one client in one worker: threads, tasks, a forked child.

The lock in the adapter is a file that flock(2) locks, so that it is one for threads and processes.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from harness.core.messages import Reply
from tests.clients.workers import WorkerUnderTest, adapter_argv, worker

HELD = """
made = 0
def open(self, nodes, options):
    Client.made += 1
    self.number, self.path = Client.made, options["path"]
    self.local = threading.local()
def acquire(self, key, ttl_ms, timeout_ms):
    self.local.user = key
    try:
        os.close(os.open(self.path + key, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        if timeout_ms == 0: raise Refused("busy")
        until = time.monotonic() + timeout_ms / 1000
        while os.path.exists(self.path + key):
            if time.monotonic() > until: raise Refused("busy")
            time.sleep(0.002)
        return self.acquire(key, ttl_ms, 0)
    if key == "unknown": raise Broken()
    return Grant(f"{os.getpid()} {threading.get_ident()} {self.number}")
def release(self, grant):
    if not hasattr(self.local, "user"): raise Refused("another thread")
    os.unlink(self.path + self.local.user)
def share(self, keys, ttl_ms): pass
"""
ON_LOOP = """
async def open(self, nodes, options):
    self.locks = {}
async def acquire(self, key, ttl_ms, timeout_ms):
    lock = self.locks.setdefault(key, asyncio.Lock())
    if lock.locked() and timeout_ms == 0: raise Refused("busy")
    await asyncio.wait_for(lock.acquire(), max(1, timeout_ms / 1000))
    return Grant(str(id(asyncio.current_task())), handle=lock)
async def release(self, grant): grant.handle.release()
async def close(self): pass
"""


def sharing(users: str, **more: Any) -> dict[str, Any]:
    return {"users": users, "together": 2, "share": "connection", **more}


def opened(under_test: WorkerUnderTest, tmp_path: Path, told: dict[str, Any]) -> None:
    options = {"nodes": [], "options": {"path": f"{tmp_path}/"}, "sharing": told}
    for user in (0, 1):
        reply = under_test.ask("open", options=options, user=user)
        assert reply.type == "ok", reply


def met(under_test: WorkerUnderTest) -> tuple[Reply, Reply]:
    """User 1 waits for what user 0 holds, and has it once that is given back: both grants."""
    first = under_test.ask("acquire", key="k", hold="0", ttl_ms=9000, timeout_ms=0, user=0)
    assert first.type == "ok", first
    waits = under_test.send("acquire", key="k", hold="1", ttl_ms=9000, timeout_ms=20_000, user=1)
    gives = under_test.send("release", key="k", hold="0", user=0)  # while user 1 is waiting
    replies = {reply.id: reply for reply in (under_test.receive(), under_test.receive())}
    assert replies[gives].type == "ok", replies
    assert replies[waits].type == "ok", replies
    again = under_test.ask("release", key="k", hold="1", user=1)
    assert again.type == "ok", again
    return first, replies[waits]


@pytest.mark.parametrize("kind", ["threads", "fork"])
def test_a_user_waits_while_another_is_served(kind: str, tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, HELD), tmp_path) as under_test:
        assert under_test.hello["users"] == ["threads", "fork"]
        opened(under_test, tmp_path, sharing(kind))
        owners = [str(reply.value["owner"]).split() for reply in met(under_test)]
        (pid, thread, client), (other_pid, other_thread, other_client) = owners
        assert client == other_client, "one client for both"
        assert (pid != other_pid) == (kind == "fork")
        if kind == "threads":
            assert thread != other_thread
        assert under_test.end() == 0


def test_tasks_share_a_loop(tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, ON_LOOP), tmp_path) as under_test:
        assert under_test.hello["users"] == ["tasks"]
        opened(under_test, tmp_path, sharing("tasks"))
        first, second = met(under_test)
        assert first.value["owner"] != second.value["owner"], "a task of its own for each user"
        assert under_test.end() == 0


def test_after_an_unknown_outcome_all_go_on_with_a_new_client(tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, HELD), tmp_path) as under_test:
        told = sharing("threads")
        opened(under_test, tmp_path, told)
        asked = under_test.ask("acquire", key="unknown", hold="0", timeout_ms=0, user=0)
        assert asked.type == "info"
        assert under_test.ask("close", user=0).type == "ok"
        options = {"nodes": [], "options": {"path": f"{tmp_path}/"}, "sharing": told}
        assert under_test.ask("open", options=options, user=0).type == "ok"
        for user in (0, 1):
            got = under_test.ask("acquire", key=f"k{user}", hold=f"n{user}", user=user)
            assert got.value["owner"].split()[2] == "2", "the second client that was made"


def test_a_child_that_closes_is_forked_anew(tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, HELD), tmp_path) as under_test:
        told = sharing("fork")
        opened(under_test, tmp_path, told)
        assert under_test.ask("close", user=1).type == "ok"
        options = {"nodes": [], "options": {"path": f"{tmp_path}/"}, "sharing": told}
        assert under_test.ask("open", options=options, user=1).type == "ok"
        met(under_test)


@pytest.mark.parametrize("kind", ["threads", "fork"])
def test_users_do_not_keep_a_worker_alive(kind: str, tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, HELD), tmp_path) as under_test:
        opened(under_test, tmp_path, sharing(kind))
        under_test.ask("acquire", key="k", hold="0", timeout_ms=0, user=0)
        under_test.send("acquire", key="k", hold="1", timeout_ms=60_000, user=1)
        under_test.process.send_signal(signal.SIGTERM)
        assert under_test.process.wait(10) == 0
        assert (tmp_path / "k").exists(), "it gave nothing back at its end"


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (sharing("tasks"), "users is 'tasks'"),
        (sharing("threads", pool={"size": 2, "per": "operation", "wait_ms": 0}), "'pool'"),
        (sharing("threads", mood="good"), "must be an object of"),
    ],
)
def test_what_cannot_be_shared_is_refused(told: dict[str, Any], says: str, tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, HELD), tmp_path) as under_test:
        options = {"nodes": [], "options": {"path": "/"}, "sharing": told}
        reply = under_test.ask("open", options=options)
        assert reply.type == "fail"
        assert says in (reply.error or "")


def test_without_sharing_there_is_one_user(tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, HELD), tmp_path) as under_test:
        assert under_test.open(options={"path": f"{tmp_path}/"}).type == "ok"
        reply = under_test.ask("acquire", key="k", hold="0", timeout_ms=0, user=1)
        assert (reply.type, "serves one user" in (reply.error or "")) == ("fail", True)
