"""All 109 recorded histories of Porcupine: the same verdicts, by both strategies."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from checkers.engine import check, frontier, partition, wgl
from checkers.engine.budget import Budget
from checkers.engine.work import Work
from checkers.interchange.porcupine_corpus import read
from checkers.models import make
from harness.core.errors import UserError
from harness.core.result import Valid
from tests.checkers import corpus

ENTRIES: list[dict[str, Any]] = corpus.VERDICTS["histories"]


@pytest.fixture(scope="module")
def where() -> Path:
    try:
        return corpus.folder()
    except corpus.CorpusMissing as error:
        if corpus.required():
            pytest.fail(f"{corpus.REQUIRE}=1, but the corpus is not there: {error}")
        pytest.skip(f"corpus of Porcupine: {error}")


def test_the_list_is_complete() -> None:
    assert len(ENTRIES) == 109
    assert sum(entry["model"] == "cas" for entry in ENTRIES) == 103
    assert sum(entry["linearizable"] for entry in ENTRIES) == 27


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["file"])
def test_verdict(entry: dict[str, Any], where: Path) -> None:
    intervals = read(corpus.path_of(entry, where)).intervals()
    assert len(intervals) >= entry["operations"]
    result = check(intervals, make(entry["model"]))
    assert result.valid == (Valid.TRUE if entry["linearizable"] else Valid.FALSE)
    assert (result.witness is None) == entry["linearizable"]


def test_frontier_alone_agrees_on_etcd(where: Path) -> None:
    model = make("cas")
    for entry in ENTRIES:
        if entry["model"] != "cas":
            continue
        for ops in partition(read(corpus.path_of(entry, where)).intervals(), model).values():
            for strategy in (frontier, wgl):
                budget = Budget(seconds=60, memory_bytes=1 << 34, nodes_max=1 << 40)
                verdict, _ = strategy.search(Work(ops, model), budget)
                assert verdict == entry["linearizable"], (entry["file"], strategy.__name__)


def test_the_go_module_has_the_same_files() -> None:
    """The other way to the corpus works too: download, checksum, digests."""
    if shutil.which("go") is None:
        pytest.skip("no go command")
    try:
        where = corpus.from_module()
    except corpus.CorpusMissing as error:
        pytest.skip(f"module not reachable: {error}")
    for entry in ENTRIES[::20]:
        assert corpus.path_of(entry, where).is_file()


def test_a_changed_file_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "jepsen").mkdir()
    (tmp_path / "jepsen" / "etcd_000.log").write_text("INFO jepsen.util - 0 :invoke :read nil\n")
    with pytest.raises(corpus.CorpusMissing, match="sha256"):
        corpus.path_of(ENTRIES[0], tmp_path)


def test_reader_of_etcd_logs(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(
        "INFO  jepsen.util - 4\t:invoke\t:read\tnil\n"
        "something else\n"
        "INFO  jepsen.util - 4\t:ok\t:read\t3\n"
        "INFO  jepsen.util - 1\t:invoke\t:cas\t[3 4]\n"
        "INFO  jepsen.util - 1\t:fail\t:cas\t[3 4]\n"
        "INFO  jepsen.util - 2\t:invoke\t:write\t1\n"
        "INFO  jepsen.util - 2\t:info\t:write\t:timed-out\n"
    )
    history = read(path)
    assert [(op.time, op.type, op.value, op.error) for op in history] == [
        (1, "invoke", None, None),
        (3, "ok", 3, None),
        (4, "invoke", [3, 4], None),
        (5, "fail", [3, 4], "mismatch"),
        (6, "invoke", 1, None),
        (7, "info", None, "timed-out"),
    ]


def test_reader_names_a_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    good = '{:process 1, :type :invoke, :f :get, :key "3", :value nil}\n'
    path.write_text(good + "nonsense\n")
    with pytest.raises(UserError, match="line 2"):
        read(path)
