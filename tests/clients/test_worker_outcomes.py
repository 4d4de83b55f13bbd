"""What becomes of exceptions, odd results, loss signals and coroutines."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.clients.workers import LIMIT_S, adapter_argv, worker

CASES = [
    ("raise Busy('x')", "fail", "busy"),
    ("raise SomewhatBusy('a subclass')", "fail", "busy"),
    ("1 / 0", "fail", "ZeroDivisionError: division by zero"),
    ("raise Refused('not-held')", "fail", "not-held"),
    ("raise Unknown('who knows')", "info", "who knows"),
    ("raise TimeoutError('no\\nreply')", "info", "TimeoutError: no reply"),
    ("raise Broken('?')", "info", "lockhavoc_adapter_adapter_under_test.Broken: ?"),
    (
        "raise Broken('x' * 5000)",
        "info",
        f"lockhavoc_adapter_adapter_under_test.Broken: {'x' * 99}",
    ),
    ("raise SystemExit(3)", "info", "SystemExit: 3"),
    ("raise KeyboardInterrupt", "info", "KeyboardInterrupt"),
    ("raise asyncio.CancelledError", "info", "asyncio.exceptions.CancelledError"),
    ("return True", "info", "adapter: acquire returned True instead of a Grant"),
    ("return Grant(b'x')", "info", "adapter: Grant.owner is b'x'; it must be a str"),
    ("return Grant('x', '7')", "info", "adapter: Grant.token is '7'; it must be an int or None"),
]


@pytest.mark.parametrize("kind", ["", "async "], ids=["blocking", "asyncio"])
def test_the_outcome_of_an_exception(tmp_path: Path, kind: str) -> None:
    body = f"{kind}def acquire(self, key, ttl_ms, timeout_ms):\n"
    body += "".join(f"    if key == '{n}': {what}\n" for n, (what, _, _) in enumerate(CASES))
    with worker(adapter_argv(tmp_path, body), tmp_path) as client:
        client.open()
        for number, (what, outcome, error) in enumerate(CASES):
            reply = client.ask("acquire", key=str(number), hold="h")
            said = reply.error or ""
            assert (reply.type, said[: len(error)]) == (outcome, error), what
            assert len(said) <= 500
            # The worker goes on, and a hold without a grant cannot be released.
            assert "no grant" in (client.ask("release", key="k", hold="h").error or "")


def test_a_release_with_an_unknown_outcome_can_be_repeated(tmp_path: Path) -> None:
    body = """
    tries = 0
    def release(self, grant):
        self.tries += 1
        if self.tries == 1: raise TimeoutError
        raise Refused("not-held")
    """
    with worker(adapter_argv(tmp_path, body), tmp_path) as client:
        client.open()
        client.ask("acquire", key="k", hold="h")
        assert client.ask("release", key="k", hold="h").type == "info"
        assert client.ask("release", key="k", hold="h").error == "not-held"
        # Now it is over: the third never reaches the library, so it observes nothing.
        assert "no grant" in (client.ask("release", key="k", hold="h").error or "")


def test_open_that_fails_can_be_tried_again(tmp_path: Path) -> None:
    body = """
    def open(self, nodes, options):
        if not nodes: raise Refused("option nodes is empty")
    """
    with worker(adapter_argv(tmp_path, body), tmp_path) as client:
        assert client.open().error == "option nodes is empty"
        node = {"name": "n", "host": "127.0.0.1", "port": 1}
        assert client.open(nodes=[node]).type == "ok"


def test_believes_passes_the_librarys_word_on(tmp_path: Path) -> None:
    body = """
    def believes(self, grant): return grant.owner == "owner of a"
    """
    with worker(adapter_argv(tmp_path, body), tmp_path) as client:
        client.open()
        for key, word in (("a", True), ("b", False)):
            client.ask("acquire", key=key, hold=key)
            assert client.ask("believes", key=key, hold=key).value is word


LOSING = """
    def watch(self, lost): self.lost = lost
    def acquire(self, key, ttl_ms, timeout_ms):
        if key == "early": self.lost("owner", "before the grant was returned")
        return Grant("owner" if key == "early" else "late owner")
    def release(self, grant):
        thread = threading.Thread(target=self.lost, args=(grant.owner, "in a thread"))
        thread.start(); thread.join()
        raise TimeoutError
    """


def test_a_loss_signal_names_key_and_hold(tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, LOSING), tmp_path) as client:
        assert client.hello["powers"] == ["signals-loss"]
        client.open()
        client.ask("acquire", key="k", hold="h1")
        client.send("release", key="k", hold="h1")
        event, reply = client.receive(), client.receive()
        assert (event.event, event.key, event.hold, event.error) == (
            "lost",
            "k",
            "h1",
            "in a thread",
        )
        assert event.complete > 0
        assert reply.type == "info"


def test_a_loss_signal_never_overtakes_the_grant(tmp_path: Path) -> None:
    with worker(adapter_argv(tmp_path, LOSING), tmp_path) as client:
        client.open()
        client.send("acquire", key="early", hold="h1")
        reply, event = client.receive(), client.receive()
        assert (reply.type, event.event, event.hold) == ("ok", "lost", "h1")


def test_an_asyncio_client_keeps_running_between_requests(tmp_path: Path) -> None:
    body = """
    beats = 0
    async def beat(self):
        while True:
            await asyncio.sleep(0.001)
            self.beats += 1
    async def open(self, nodes, options): self.task = asyncio.ensure_future(self.beat())
    async def acquire(self, key, ttl_ms, timeout_ms): return Grant("o", self.beats)
    """
    with worker(adapter_argv(tmp_path, body), tmp_path) as client:
        client.open()
        beats, holds = 0, 0
        # The loop of this test waits in reads, so beats can only come between requests.
        while beats < 3 and holds < 10_000:
            holds += 1
            beats = client.ask("acquire", key="k", hold=str(holds)).value["token"]
        assert beats >= 3
        assert client.end() == 0


def test_sigterm_during_a_coroutine_closes_the_client(tmp_path: Path) -> None:
    body = """
    async def acquire(self, key, ttl_ms, timeout_ms):
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(3600)
    async def close(self): print("closed in order", flush=True)
    """
    with worker(adapter_argv(tmp_path, body), tmp_path) as client:
        client.open()
        client.send("acquire", key="k", hold="h")
        assert client.process.wait(LIMIT_S) == 0
        assert "closed in order" in client.log()


def test_a_library_that_replaces_sigterm_still_ends_with_the_harness(tmp_path: Path) -> None:
    body = """
    def open(self, nodes, options): signal.signal(signal.SIGTERM, lambda *_: print("mine"))
    """
    with worker(adapter_argv(tmp_path, body), tmp_path) as client:
        client.open()
        client.process.send_signal(signal.SIGTERM)
        assert client.process.wait(LIMIT_S) == 0
        assert signal.SIGTERM  # and the harness needed no SIGKILL
