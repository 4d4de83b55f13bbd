"""session-expire in virtual time: when it looks again, when it gives up, what counts as proof.

That it ends real sessions is shown on a real ensemble (test_faults_zookeeper3.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from harness.core.clock import NS_PER_S, VirtualClock
from harness.core.errors import HarnessError
from harness.places import Here
from nemesis.session_expire import SessionExpire


@dataclass
class Leader:
    """A server that knows a session of link w0-b from ``since_ns`` on, and ends it if ``obeys``."""

    clock: VirtualClock
    since_ns: int = 0
    obeys: bool = True
    known: set[str] = field(default_factory=lambda: {"0x1"})
    name: str = "b"

    def sessions(self, link: Any) -> list[str]:
        there = link.name == "w0-b" and self.clock.now() >= self.since_ns
        return sorted(self.known) if there else []

    def end_session(self, link: Any, identity: str) -> None:
        if self.obeys:
            self.known.discard(identity)

    def has_session(self, identity: str) -> bool:
        return identity in self.known


def world_of(leader: Leader) -> Any:
    links = [SimpleNamespace(name=f"w{w}-{n}", src=f"w{w}", dst=n) for w in (0, 1) for n in "ab"]
    running = SimpleNamespace(state="running", identity="1")
    return SimpleNamespace(
        clock=leader.clock,
        runtime="docker",
        cluster=SimpleNamespace(nodes={"b": leader}, links=links, primary=lambda: "b"),
        workers=[SimpleNamespace(name=f"w{w}", status=lambda: running) for w in (0, 1)],
    )


def test_a_session_that_comes_a_moment_later_is_found_and_ended() -> None:
    leader = Leader(VirtualClock(), since_ns=NS_PER_S)
    fault, world = SessionExpire(), world_of(leader)
    fault.inject(world, ["w0"])
    assert NS_PER_S <= leader.clock.now() < 1.1 * NS_PER_S
    assert not leader.known
    evidence = fault.evidence(world, ["w0"])
    assert evidence.bit
    assert evidence.facts == {"w0": {"ended": ["0x1"], "left": []}}


def test_a_worker_without_one_is_named_after_a_bounded_time() -> None:
    leader = Leader(VirtualClock())
    fault = SessionExpire()
    with pytest.raises(HarnessError, match="no server knows a session of w1"):
        fault.inject(world_of(leader), ["w1"])
    assert leader.clock.now() <= 3 * NS_PER_S
    assert leader.known == {"0x1"}, "nobody else's was ended"


def test_a_session_that_goes_on_is_no_evidence() -> None:
    leader = Leader(VirtualClock(), obeys=False)
    fault, world = SessionExpire(), world_of(leader)
    fault.inject(world, ["w0"])
    evidence = fault.evidence(world, ["w0"])
    assert not evidence.bit
    assert "0 of 1 sessions ended" in evidence.says


@pytest.mark.parametrize(
    ("backend", "why"),
    [
        ("redis-single", "a lock ends with its time to live"),
        ("postgres1", "use backend-kill"),
        ("etcd3", "a lease for each lock"),
    ],
)
def test_other_services_are_refused_with_the_reason(backend: str, why: str) -> None:
    reason = SessionExpire().can(Here("docker", backend))
    assert reason is not None
    assert why in reason
    assert SessionExpire().can(Here("docker", "zookeeper3")) is None
