"""Recipes: both twins of each script agree, the live adapter runs them, canaries are described."""

from __future__ import annotations

import ast
import importlib
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clients.broken.libraries import canary
from clients.broken.registry import CANARIES
from clients.recipes.base import Recipe, Script
from clients.recipes.redis_members import HOLDS, LEAVE, STAY
from clients.recipes.registry import RECIPES
from clients.registry import LIBRARIES
from clients.sim.clock import SimClock
from clients.sim.store import SimStore
from harness.scenario import parse
from tests.clients.relay import relay_to
from tests.clients.servers import RedisServer, free_port, redis_server
from tests.clients.workers import WorkerUnderTest, worker

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted([*RECIPES, *CANARIES])
KEYS = ("a", "b", "n")
VALUES = ("me", "you", "7", "-3", "x")


def recipe_class(name: str) -> type[Recipe]:
    module, _, attribute = LIBRARIES.load(name).extra["recipe"].partition(":")
    found: type[Recipe] = getattr(importlib.import_module(module), attribute)
    return found


SHARED = [name for name in NAMES if recipe_class(name).reads or recipe_class(name).permits]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    pytest.importorskip("redis", reason="the redis package is not in this environment")
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


# ---- what is written down about them -------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_library_says_what_its_recipe_is(name: str) -> None:
    library, recipe = LIBRARIES.load(name), recipe_class(name)
    assert library.name == name
    assert library.adapter.is_file()
    assert library.lease == recipe.lease
    assert ("renew" in library.powers) == recipe.renewable
    assert ("fenced" in library.powers) == recipe.fencing == bool(library.fencing)
    assert ("read" in library.powers) == recipe.reads
    assert ("permits" in library.powers) == recipe.permits
    assert "sim" in library.backends


@pytest.mark.parametrize("name", sorted(CANARIES))
def test_a_canary_names_its_kind_its_checker_and_a_scenario(name: str) -> None:
    facts = canary(name)
    text = importlib.import_module(recipe_class(name).__module__).__doc__ or ""
    assert re.match(rf"(K\d\d, )*{facts.kind}\b", text), "its docstring opens with the kind"
    assert LIBRARIES.load(name).canary == facts.checker
    scenario = parse(
        {
            "name": name,
            "description": facts.says,
            "claim": {"verdict": "violation", "by": [facts.checker], "why": facts.needs},
            "backend": {"name": "sim"},
            "client": {"library": name},
            "workload": dict(facts.workload),
            "faults": [dict(fault) for fault in facts.faults],
            "resource": {"mode": facts.resource},
        }
    )
    assert scenario.faults or scenario.workload.kind != "mutex", "what brings it out"


def test_every_file_of_the_canaries_is_registered() -> None:
    files = {path.stem for path in (ROOT / "clients" / "broken").glob("*.py")}
    known = {recipe_class(name).__module__.rpartition(".")[2] for name in CANARIES}
    assert files - known == {"__init__", "canary", "libraries", "registry"}


@pytest.mark.parametrize(
    "path",
    [
        *(ROOT / "clients" / "recipes").glob("*.py"),
        *(ROOT / "clients" / "broken").glob("*.py"),
        ROOT / "clients" / "adapters" / "recipe.py",
    ],
    ids=lambda path: path.name,
)
def test_an_old_python_can_read_it(path: Path) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


# ---- the twins -----------------------------------------------------------------------------


def random_command(rng: random.Random, scripts: tuple[Script, ...]) -> tuple[Any, ...]:
    """Leases are so long that none ends during a test, and all differ widely."""
    key, value = rng.choice(KEYS), rng.choice(VALUES)
    ttl_ms = rng.choice([10_000_000, 20_000_000, 30_000_000])
    only = rng.choice([(), ("NX",), ("XX",)])
    lease = rng.choice([(), ("PX", ttl_ms), ("EX", ttl_ms // 1000)])
    kinds: list[tuple[Any, ...]] = [
        ("SET", key, value, *only, *lease),
        ("SET", key, value, *lease, *only),
        ("SET", key, value, "NX", "PX", rng.choice([ttl_ms, 0, -1])),
        ("GET", key),
        ("DEL", key, rng.choice(KEYS)),
        ("EXISTS", key),
        ("PEXPIRE", key, rng.choice([ttl_ms, 0, -5])),
        ("EXPIRE", key, ttl_ms // 1000),
        ("PTTL", key),
        ("INCR", key),
        ("ECHO", value),
        ("FLUSHALL",) if rng.random() < 0.05 else ("GET", key),
    ]
    for script in scripts:
        keys = (key, f"{{{key}}}:token")
        kinds += [("EVAL", script, keys, (value, ttl_ms))] * 2
    return rng.choice(kinds)


def shared_command(rng: random.Random) -> tuple[Any, ...]:
    """One of a recipe with readers or permits, whose keys nobody else uses."""
    name = rng.choice(SHARED)
    recipe, place = recipe_class(name), f"{name}/{rng.choice('ab')}"
    keys = (place, f"{place}:readers", f"{place}:wish")
    script = rng.choice(recipe.scripts)
    if recipe.reads and script in (LEAVE, STAY, HOLDS):
        keys = keys[1:] + keys[:1]
    third = rng.choice([0, 10_000_000] if recipe.reads else [1, 2, 3])  # length of a wish, or k
    arguments = (rng.choice(VALUES), rng.choice([10_000_000, 20_000_000]), third)
    own = [("EVAL", script, keys, arguments)] * 6
    if name.endswith("counted"):
        own.append(("DECR", keys[recipe.reads]))
    else:
        own += [("ZCARD", keys[recipe.reads]), ("ZREM", keys[recipe.reads], "me", "you")]
    return rng.choice([*own, ("DEL", *keys)])


def plain(answer: Any) -> Any:
    """Answers as both sides must give them; an error counts by its last words."""
    if isinstance(answer, Exception):
        return "error", str(answer).rpartition("ERR ")[2].split(" script:")[0]
    if isinstance(answer, int) and not isinstance(answer, bool) and answer > 1_000_000:
        return "about", round(answer / 1_000_000)  # a PTTL: time goes on at one side only
    return answer


@pytest.mark.live
@pytest.mark.parametrize("seed", range(12))
def test_simulated_and_real_server_answer_alike(server: RedisServer, seed: int) -> None:
    adapter = importlib.import_module("clients.adapters.recipe")
    scripts = tuple(
        {s: None for name in NAMES if name not in SHARED for s in recipe_class(name).scripts}
    )
    assert len(scripts) == 4
    client = adapter.make("clients.recipes.redis_lock:RedisLock")
    client.open([server.node()], {})
    rng = random.Random(seed)
    store = SimStore(SimClock())
    server.command("FLUSHALL")
    kinds = set()
    for number in range(500):
        command = random_command(rng, scripts) if number % 2 else shared_command(rng)
        try:
            real = client._carry_out(command)
        except Exception as error:
            real = error
        simulated = store.answer(command)
        assert plain(simulated) == plain(real), f"command {number} of seed {seed}: {command}"
        kinds.add((command[0], type(real).__name__))
    client.close()
    assert len(kinds) > 12, "the sequences are too dull to tell the two apart"


# ---- the live adapter ----------------------------------------------------------------------


class Client:
    """A live worker with a recipe, opened."""

    def __init__(self, name: str, node: dict[str, Any], directory: Path, **options: Any) -> None:
        self._worker = worker(LIBRARIES.load(name).command(sys.executable), directory)
        self._node, self._options = node, options

    def __enter__(self) -> WorkerUnderTest:
        client = self._worker.__enter__()
        reply = client.open(nodes=[self._node], options=self._options)
        assert reply.type == "ok", reply
        return client

    def __exit__(self, *error: Any) -> None:
        self._worker.__exit__(*error)


@pytest.mark.live
@pytest.mark.parametrize(
    "name", [name for name in NAMES if name != "broken-semaphore-one-too-many"]
)
def test_each_recipe_locks_renews_and_releases_live(
    server: RedisServer, tmp_path: Path, name: str
) -> None:
    key = f"live-{name}"
    with Client(name, server.node(), tmp_path) as one, Client(name, server.node(), tmp_path) as two:
        assert one.hello["powers"] == list(LIBRARIES.load(name).powers)
        assert one.hello["lease"]["kind"] == LIBRARIES.load(name).lease
        granted = one.ask("acquire", key=key, hold="1", ttl_ms=60_000, timeout_ms=0)
        assert granted.type == "ok"
        assert (granted.value["token"] is not None) == bool(LIBRARIES.load(name).fencing)
        busy = two.ask("acquire", key=key, hold="2", ttl_ms=60_000, timeout_ms=30)
        assert (busy.type, busy.error) == ("fail", "busy")
        assert one.ask("believes", key=key, hold="1").value is True
        if "renew" in one.hello["powers"]:
            assert one.ask("renew", key=key, hold="1", ttl_ms=50_000).type == "ok"
            assert 40_000 < int(server.command("PTTL", key)[1:]) <= 50_000
        two.send("acquire", key=key, hold="3", ttl_ms=60_000, timeout_ms=20_000)
        assert one.ask("release", key=key, hold="1").type == "ok"
        assert two.receive().type == "ok"


@pytest.mark.live
def test_a_lost_lease_is_not_held_and_tokens_grow_live(server: RedisServer, tmp_path: Path) -> None:
    with Client("recipe-redis-fenced", server.node(), tmp_path) as client:
        first = client.ask("acquire", key="lost", hold="1", ttl_ms=60_000, timeout_ms=0)
        server.command("DEL", "lost")
        for do in ("renew", "release"):
            reply = client.ask(do, key="lost", hold="1", ttl_ms=60_000)
            assert (reply.type, reply.error) == ("fail", "not-held")
        second = client.ask("acquire", key="lost", hold="2", ttl_ms=60_000, timeout_ms=0)
        assert second.value["token"] == first.value["token"] + 1


@pytest.mark.live
def test_scripts_are_sent_again_after_a_restart(tmp_path: Path) -> None:
    pytest.importorskip("redis")
    with (
        redis_server(tmp_path) as own,
        Client("recipe-redis-fenced", own.node(), tmp_path) as client,
    ):
        assert client.ask("acquire", key="k", hold="1", ttl_ms=60_000, timeout_ms=0).type == "ok"
        assert client.ask("release", key="k", hold="1").type == "ok"
        own.kill()
        refused = client.ask("acquire", key="k", hold="2", ttl_ms=60_000, timeout_ms=0)
        assert refused.type in ("fail", "info")
        own.start()
        client.ask("acquire", key="k", hold="3", ttl_ms=60_000, timeout_ms=0)
        again = client.ask("acquire", key="k2", hold="4", ttl_ms=60_000, timeout_ms=0)
        assert again.type == "ok", again


@pytest.mark.live
def test_a_refused_connection_is_definite_and_a_lost_answer_is_not(
    server: RedisServer, tmp_path: Path
) -> None:
    name, key = "recipe-redis", "lost-answer"
    with (
        relay_to(server.port) as relay,
        Client(name, {**server.node(), "port": relay.port}, tmp_path) as client,
    ):
        relay.cut_reply(key.encode())  # not "SET": redis-py's greeting says SETINFO
        lost = client.ask("acquire", key=key, hold="1", ttl_ms=60_000, timeout_ms=0)
        assert (relay.cuts, lost.type) == (1, "info")
        again = client.ask("acquire", key=key, hold="2", ttl_ms=60_000, timeout_ms=0)
        assert again.error == "busy", "the command whose answer was lost has acted"
    with Client(name, {**server.node(), "port": free_port()}, tmp_path) as client:
        refused = client.ask("acquire", key=key, hold="3", ttl_ms=60_000, timeout_ms=0)
        assert refused.type == "fail"
        assert "cannot connect" in (refused.error or "")


@pytest.mark.live
def test_unknown_options_are_refused(server: RedisServer, tmp_path: Path) -> None:
    with worker(LIBRARIES.load("recipe-redis").command(sys.executable), tmp_path) as client:
        reply = client.open(nodes=[server.node()], options={"poll": 5})
        assert reply.type == "fail"
        assert "'poll' is unknown" in (reply.error or "")
