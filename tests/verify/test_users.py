"""Situations of several users: who is judged on them, and that broken locks come out as worse."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from clients.registry import LIBRARIES
from harness.core.result import Valid
from harness.registries import BACKENDS
from harness.verify.cells import blank, judge, scenario_data
from harness.verify.model import BREAKS
from harness.verify.servers import SITUATIONS
from harness.verify.traits import SHARING, traits_of
from tests.verify.test_matrix import invoke, report

READERS = {"readers", "reader-pause", "reader-killed"}
PERMITS = {"permits", "permit-pause", "permit-killed"}
SHARED = {"shared-object", "shared-client", "pooled", "pooled-kept"}


def asked(library: str, backend: str) -> set[str]:
    """Those of this file's situations that a library is judged on."""
    traits = traits_of(library, backend, "process")
    names = READERS | PERMITS | SHARED | {"crashes"}
    return {name for name in names if SITUATIONS[name].build(traits) is not None}


def test_a_library_is_judged_on_what_it_has() -> None:
    assert asked("coredis", "redis-single") == {"crashes"}
    assert asked("redis-py", "redis-single") == {
        "crashes", "shared-object", "shared-client", "pooled",
    }  # fmt: skip
    assert asked("recipe-redis-rw", "redis-single") == {"crashes"} | READERS
    assert asked("kazoo-semaphore", "zookeeper3") == {"crashes"} | PERMITS
    assert asked("psycopg", "postgres1") == {
        "crashes", "readers", "reader-killed", "shared-client", "pooled", "pooled-kept",
    }  # fmt: skip


def test_all_libraries_are_asked_how_they_die_and_those_with_a_power_for_it() -> None:
    for library in LIBRARIES:
        known = LIBRARIES.load(library)
        for backend in (name for name in known.backends if name in BACKENDS):
            names = asked(library, backend)
            assert "crashes" in names
            assert ("readers" in names) == ("read" in known.powers)
            assert ("permits" in names) == ("permits" in known.powers)


@pytest.mark.parametrize("what", ["object", "pool"])
def test_who_shares_has_an_adapter_that_can(what: str) -> None:
    """The worker's hello decides in a run; a row without the means would be refused there."""
    means = {"object": r"\bShares\b", "pool": r"\bdraw_from\b|\bPooling\b|one\.Blocking"}[what]
    for library, sharing in SHARING.items():
        if not (sharing.pool if what == "pool" else sharing.object_users):
            continue
        adapter = LIBRARIES.load(library).adapter
        texts = [adapter.read_text()]
        for name in re.findall(r"^from clients\.adapters\.(\w+) import", texts[0], re.M):
            texts.append((adapter.parent / f"{name}.py").read_text())
        assert any(re.search(means, text) for text in texts), library


def test_semaphores_have_no_resource_that_could_refuse() -> None:
    data = scenario_data(
        SITUATIONS["permits"], traits_of("py-redis-semaphore", "redis-single", "process")
    )
    assert data is not None
    assert "resource" not in data


def test_one_owner_for_all_users_is_no_promise() -> None:
    def stance(library: str, backend: str, situation: str) -> str:
        setup = SITUATIONS[situation].build(traits_of(library, backend, "process"))
        assert setup is not None
        return setup.claims["grant"]

    assert stance("redis-py-asyncio", "redis-single", "shared-object") == BREAKS
    assert stance("psycopg", "postgres1", "shared-client") == BREAKS
    assert stance("redis-py", "redis-single", "shared-object") == "holds"
    assert stance("pals", "postgres1", "shared-client") == "holds"


def test_where_nothing_is_promised_what_breaks_is_as_claimed_and_silence_is_nothing() -> None:
    def verdict(**valid: Valid) -> str:
        cell = blank(SITUATIONS["pooled"], traits_of("psycopg-fenced", "postgres1", "process"))
        assert "holds" not in cell.claims.values()
        judge(cell, report(**valid))
        return cell.verdict

    assert verdict(lease=Valid.FALSE, exclusion=Valid.FALSE) == "as-claimed"
    assert verdict() == "better"
    assert verdict(lease=Valid.UNKNOWN, exclusion=Valid.UNKNOWN) == "unknown"
    assert verdict(lease=Valid.FALSE, vacuity=Valid.UNKNOWN) == "unknown"


def test_a_member_of_etcd_is_wiped_and_a_majority_remembers() -> None:
    traits = traits_of("etcd-sdk-python", "etcd3", "process")
    data = scenario_data(SITUATIONS["server-restart-empty"], traits)
    assert data is not None
    assert [one["target"] for one in data["faults"]] == ["minority"]
    assert "tolerates" not in data["claim"] or not data["claim"]["tolerates"]


@pytest.mark.parametrize(
    ("library", "situation", "broken"),
    [
        ("broken-rw-writer-among-readers", "readers", "grant"),
        ("broken-rw-readers-counted", "reader-killed", "progress"),
        ("broken-semaphore-one-too-many", "permits", "grant"),
        ("broken-semaphore-counted", "permit-killed", "progress"),
        ("broken-no-ttl", "crashes", "progress"),
    ],
)
def test_a_broken_lock_is_worse_and_the_right_one_is_not(
    library: str, situation: str, broken: str, tmp_path: Path
) -> None:
    kind = "rw" if "-rw-" in library else "semaphore"
    twin = "recipe-redis" if library == "broken-no-ttl" else f"recipe-redis-{kind}"
    words = ("--runtime", "sim", "--only", situation, "--seed", "3", "--json")
    code, out = invoke("verify", library, *words, "--store", str(tmp_path / "a"))
    (cell,) = json.loads(out)["cells"]
    assert (code, cell["verdict"], cell["seen"][broken]) == (1, "worse", "broken")
    assert cell["found"]
    code, out = invoke("verify", twin, *words, "--store", str(tmp_path / "b"))
    (cell,) = json.loads(out)["cells"]
    assert (code, cell["verdict"]) == (0, "as-claimed")
