"""Verification in virtual time: claims, verdicts, scorecard, files, regressions."""

from __future__ import annotations

import json
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from checkers.registry import CHECKERS
from harness.cli import cli
from harness.core.errors import UserError
from harness.core.result import Anomaly, Result, Valid
from harness.interrupts import Interrupted
from harness.registries import BACKENDS, LIBRARIES
from harness.report.document import RunReport
from harness.rules import cross_problems
from harness.scenario import parse
from harness.verify import cells as cells_module
from harness.verify import toml
from harness.verify.cells import blank, judge, scenario_data
from harness.verify.compare import compare
from harness.verify.document import Cell, Document, encode, load, scorecard
from harness.verify.matrix import Planned, planned, verify
from harness.verify.model import BREAKS, HOLDS, NAMES, PROPERTIES
from harness.verify.page import junit, markdown, text
from harness.verify.servers import SITUATIONS
from harness.verify.traits import traits_of


def invoke(*words: str) -> tuple[int, str]:
    """(exit code, stdout) of the command line, in this process."""
    result = CliRunner().invoke(cli, words, standalone_mode=False, catch_exceptions=False)
    return int(result.return_value or 0), result.stdout


PLACES = [
    (library, backend)
    for library in LIBRARIES.names()
    for backend in LIBRARIES.load(library).backends
    if backend in BACKENDS or backend == "sim"
]


@pytest.mark.parametrize(("library", "backend"), PLACES, ids=lambda name: name)
def test_every_cell_of_every_library_is_a_scenario_without_a_problem(
    library: str, backend: str
) -> None:
    for runtime in ("process", "docker"):
        traits = traits_of(library, backend, runtime)
        applying = 0
        for situation in SITUATIONS.values():
            data = scenario_data(situation, traits)
            if data is None:
                continue
            applying += 1
            assert not cross_problems(data), situation.name
            parse(data)
            assert tomllib.loads(toml.dump(data)) == data, "the printed file is the same scenario"
            assert set(blank(situation, traits).claims) == set(NAMES)
        assert applying >= 6


def test_the_claims_follow_from_the_registry_entry() -> None:
    """A lock without a token promises nothing about late writes, the one with a token does."""
    pause = SITUATIONS["holder-pause"]

    def stance(library: str, backend: str, name: str) -> str:
        setup = pause.build(traits_of(library, backend, "process"))
        assert setup is not None
        return setup.claims[name]

    assert stance("redis-py", "redis-single", "write") == BREAKS
    assert stance("redis-py-fenced", "redis-single", "write") == HOLDS
    assert stance("redis-py-fenced", "redis-single", "belief") == BREAKS
    assert stance("psycopg", "postgres1", "belief") == HOLDS, "a connection does not run out"
    assert stance("kazoo", "zookeeper3", "write") == BREAKS


def test_only_where_a_majority_decides_is_a_grant_asked_for_during_the_fault() -> None:
    situation = SITUATIONS["minority-away"]
    assert scenario_data(situation, traits_of("redis-py", "redis-single", "process")) is None
    data = scenario_data(situation, traits_of("redlock-py", "redlock5", "process"))
    assert data is not None
    bound_ms, (shortest_ms, _) = data["run"]["grant_ms"], data["faults"][0]["duration_ms"]
    assert data["workload"]["ttl_ms"] < bound_ms < shortest_ms, "else it would be UNKNOWN"
    cell = blank(situation, traits_of("redlock-py", "redlock5", "process"), seed=1)
    judge(cell, report(availability=Valid.FALSE))
    assert (cell.seen["progress"], cell.verdict) == ("broken", "worse")


def test_every_property_names_registered_checkers() -> None:
    for one in PROPERTIES:
        assert set(one.checkers) <= set(CHECKERS.names())


# ---- verdicts ---------------------------------------------------------------------------------


def report(**valid: Valid) -> RunReport:
    """A run whose checkers said so; all others are fine."""
    names = [checker for one in PROPERTIES for checker in one.checkers] + ["vacuity"]
    results = [
        Result(
            checker=name,
            valid=valid.get(name, Valid.TRUE),
            says=f"{name} says so",
            anomalies=[Anomaly(kind="k", ops=[1, 2], says=f"{name} broke")]
            if valid.get(name) is Valid.FALSE
            else [],
        )
        for name in names
    ]
    return RunReport(name="x", results=results)


def judged(library: str, situation: str, found: RunReport) -> Cell:
    cell = blank(SITUATIONS[situation], traits_of(library, "redis-single", "process"), seed=1)
    judge(cell, found)
    return cell


def test_a_broken_promise_is_worse_even_if_the_run_was_vacuous() -> None:
    found = report(lease=Valid.FALSE, vacuity=Valid.UNKNOWN)
    cell = judged("redis-py", "holder-pause", found)
    assert cell.verdict == "worse"
    assert cell.found == ["lease: lease broke (ops 1 2)"]


def test_what_is_not_promised_may_break() -> None:
    found = report(exclusion=Valid.FALSE, fencing=Valid.FALSE)
    assert judged("redis-py", "holder-pause", found).verdict == "as-claimed"
    assert judged("redis-py-fenced", "holder-pause", found).verdict == "worse", "it has tokens"


def test_what_was_expected_to_break_and_held_is_better() -> None:
    assert judged("redis-py", "holder-pause", report()).verdict == "better"
    assert judged("redis-py", "renewed", report()).verdict == "as-claimed"


@pytest.mark.parametrize("name", ["vacuity", "lease", "liveness"])
def test_doubt_is_never_a_pass(name: str) -> None:
    assert judged("redis-py", "renewed", report(**{name: Valid.UNKNOWN})).verdict == "unknown"


def test_a_harness_that_failed_proves_nothing() -> None:
    found = report()
    found.failures = ["teardown of cluster: boom"]
    assert judged("redis-py", "renewed", found).verdict == "unknown"


def test_a_run_without_results_proves_nothing() -> None:
    assert judged("redis-py", "renewed", RunReport(name="x")).verdict == "unknown"


def test_the_scorecard_counts_promises_by_dimension() -> None:
    cells = [
        judged("redis-py", "holder-pause", report(fencing=Valid.FALSE)),
        judged("redis-py", "renewed", report(honesty=Valid.FALSE)),
        judged("redis-py", "reply-cut", report()),
    ]
    scores = scorecard(cells)
    assert scores["identity"].status == "gap"
    assert scores["fencing"].unpromised == 1
    assert scores["fencing"].status == "ok"
    assert scores["release_retry"].kept == 1, "progress counts where its situation belongs"
    assert scorecard([])["lease"].status == "unknown"


# ---- comparison -------------------------------------------------------------------------------


def document(**verdicts: str) -> Document:
    cells = [
        msgspec.convert(
            {"backend": "b", "runtime": "sim", "situation": name, "verdict": verdict}, Cell
        )
        for name, verdict in verdicts.items()
    ]
    return Document(library="lib", cells=cells)


@pytest.mark.parametrize(
    ("before", "after", "kind", "code"),
    [
        ("as-claimed", "worse", "regression", 1),
        ("better", "worse", "regression", 1),
        ("unknown", "worse", "regression", 1),
        ("worse", "worse", "still-worse", 0),
        ("worse", "as-claimed", "fixed", 0),
        ("better", "as-claimed", "weaker", 0),
        ("as-claimed", "better", "stronger", 0),
        ("as-claimed", "as-claimed", "same", 0),
        ("as-claimed", "unknown", "unknown", 2),
        ("as-claimed", "not-run", "unknown", 2),
        ("unknown", "as-claimed", "unknown", 0),
    ],
)
def test_the_table_of_changes(before: str, after: str, kind: str, code: int) -> None:
    found = compare(document(x=before), document(x=after))
    assert found.changes[0].kind == kind
    assert found.exit_code == code


def test_strict_counts_what_is_no_longer_better() -> None:
    found = compare(document(x="better"), document(x="as-claimed"), strict=True)
    assert found.exit_code == 1


def test_a_cell_that_one_side_lacks_is_not_equal() -> None:
    found = compare(document(x="as-claimed", y="as-claimed"), document(x="as-claimed"))
    assert [change.kind for change in found.changes] == ["same", "unknown"]
    assert found.exit_code == 2


def test_a_recovery_that_became_much_slower_is_told() -> None:
    old, new = document(x="as-claimed"), document(x="as-claimed")
    old.cells[0].recovery_ms, new.cells[0].recovery_ms = 800, 4200
    assert "4200 ms, it was 800 ms" in compare(old, new).slower[0]
    new.cells[0].recovery_ms = 1500
    assert not compare(old, new).slower


# ---- the command ------------------------------------------------------------------------------


def test_the_correct_lock_keeps_its_promises_and_leaves_files(tmp_path: Path) -> None:
    words = ("verify", "recipe-redis-fenced", "--runtime", "sim", "--seed", "3", "--json")
    code, out = invoke(*words, "--store", str(tmp_path))
    assert code == 0
    found = msgspec.json.decode(out, type=Document)
    assert found.count("worse") == found.count("unknown") == 0
    assert found.count("as-claimed") >= 14
    kinds = [cell.kind for cell in found.cells]
    assert kinds == sorted(kinds, key=lambda kind: kind != "safety"), "safety first"
    pause = next(cell for cell in found.cells if cell.situation == "holder-pause")
    assert pause.seen["write"] == "held"
    assert pause.loss.lag_ms > 1000
    assert pause.loss.awake_lag_ms < 100
    assert pause.takeover_ms is not None
    folder = tmp_path / "verify" / "recipe-redis-fenced" / "latest"
    assert encode(load(folder / "verify.json")).decode() == out
    assert "## Scorecard" in (folder / "verify.md").read_text()
    suite = ET.fromstring((folder / "junit.xml").read_bytes())
    assert suite.get("failures") == "0"
    for cell in found.cells:
        assert "--seed 3" in cell.replay
        assert cell.verdict == "not-run" or (Path(cell.run_dir) / "scenario.toml").exists()


BROKEN = {
    "broken-release-without-check": ("late-release", "answer"),
    "broken-read-then-delete": (),
    "broken-constant-token": ("late-release", "answer"),
    "broken-renewal-recreates": ("late-renewal", "grant"),
    "broken-no-ttl": ("worker-killed", "progress"),
    "broken-token-reused": (),
}


@pytest.mark.parametrize("name", [name for name, seen in BROKEN.items() if seen])
def test_a_broken_lock_is_worse_than_claimed_in_the_situation_for_it(
    name: str, tmp_path: Path
) -> None:
    situation, broken = BROKEN[name]
    words = ("verify", name, "--runtime", "sim", "--only", situation, "--seed", "3", "--json")
    code, out = invoke(*words, "--store", str(tmp_path))
    (cell,) = json.loads(out)["cells"]
    assert code == 1
    assert cell["verdict"] == "worse"
    assert cell["seen"][broken] == "broken"
    assert cell["found"]


def test_a_fork_that_releases_without_looking_is_a_regression(tmp_path: Path) -> None:
    words = ("--runtime", "sim", "--seed", "3", "--only", "late-release", "--only", "reply-cut")
    code, _ = invoke("verify", "recipe-redis", *words, "--store", str(tmp_path))
    assert code == 0
    before = tmp_path / "verify" / "recipe-redis" / "latest" / "verify.json"
    code, out = invoke(
        "verify", "broken-release-without-check", *words, "--store", str(tmp_path / "b"),
        "--against", str(before),
    )  # fmt: skip
    assert code == 1
    assert "REGRESSION: late-release on sim: as-claimed -> worse" in out
    after = tmp_path / "b" / "verify" / "broken-release-without-check" / "latest" / "verify.json"
    assert invoke("compare", str(before), str(after))[0] == 1
    assert invoke("compare", str(before), str(before))[0] == 0
    found = json.loads(invoke("compare", str(before), str(after), "--json")[1])
    assert [change["kind"] for change in found["changes"]] == ["regression", "same"]


def test_a_cell_is_repeated_by_one_line_and_by_its_file(tmp_path: Path) -> None:
    words = ("verify", "recipe-redis", "--only", "holder-pause", "--runtime", "sim")
    code, out = invoke(*words, "--print")
    file = tmp_path / "cell.toml"
    file.write_text(out)
    assert code == 0
    code, run = invoke("run", str(file), "--seed", "4", "--store", str(tmp_path / "a"), "--json")
    assert code == 0, "what is not promised is tolerated by the printed scenario"
    code, cell = invoke(*words, "--seed", "4", "--store", str(tmp_path / "b"), "--json")
    first = Path(json.loads(run)["run_dir"]) / "history.jsonl"
    second = Path(json.loads(cell)["cells"][0]["run_dir"]) / "history.jsonl"
    assert first.read_bytes() == second.read_bytes()


def test_the_list_says_what_is_not_promised() -> None:
    words = ("verify", "redis-py", "--backend", "redis-single", "--runtime", "process", "--list")
    code, out = invoke(*words)
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert code == 0
    assert lines["holder-pause"].endswith("all but belief, write")
    assert lines["late-release"].endswith("all but belief, (write)")
    assert lines["worker-killed"].endswith("all")
    assert " longhold " in lines["overrun"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("redis-pi",), "did you mean 'redis-py'"),
        (("redis-py", "--only", "holder-paws"), "did you mean 'holder-pause'"),
        (("redis-py", "--backend", "etcd3"), "it runs on: redis-single"),
        (("psycopg", "--only", "overrun"), "no situation of overrun applies"),
        (("redis-py", "--against", "nowhere.json"), "there is no such file"),
    ],
)
def test_mistakes_are_named(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(UserError, match=says):
        invoke("verify", *words, "--runtime", "process")


def test_a_backend_that_cannot_run_here_is_listed_with_its_reason(tmp_path: Path) -> None:
    traits = traits_of("recipe-redis", "sim", "sim")
    cells = [Planned(SITUATIONS["holder-pause"], traits, "no Engine answers; start one")]
    made = verify(
        "recipe-redis", cells, seed=1, store_dir=tmp_path, argv=[], command="",
        progress=lambda _: None,
    )  # fmt: skip
    (cell,) = made.cells
    assert cell.verdict == "not-run"
    assert cell.says == "no Engine answers; start one"
    assert made.exit_code == 2, "nothing was shown"
    assert "no Engine answers" in text(made)


def test_an_interruption_keeps_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = cells_module.run_cell, []

    def second_is_cut(*words: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise Interrupted("interrupted by SIGINT")
        return real(*words, **named)

    monkeypatch.setattr("harness.verify.side_by_side.run_cell", second_is_cut)
    words = ("verify", "recipe-redis", "--runtime", "sim", "--quick", "--seed", "1")
    code, _ = invoke(*words, "--store", str(tmp_path))
    kept = load(tmp_path / "verify" / "recipe-redis" / "latest" / "verify.json")
    assert code == 130
    assert kept.interrupted
    assert len(kept.cells) == 1


def test_pages_escape_what_a_library_says() -> None:
    cell = judged("redis-py", "holder-pause", report(lease=Valid.FALSE))
    cell.found = ["<script>|alert\x1b[31m"]
    made = Document(library="redis-py", cells=[cell], scorecard=scorecard([cell]))
    assert "<script>" not in markdown(made)
    assert "\x1b" not in text(made) + markdown(made) + junit(made).decode()


def test_quick_is_a_part_of_all() -> None:
    def names(**options: bool) -> set[str]:
        found = planned(
            "redis-py", backends=["redis-single"], runtime="process", only=[],
            **{"quick": False, **options},
        )  # fmt: skip
        return {plan.situation.name for plan in found}

    assert names(quick=True) < names()
    assert names(key=True) < names()
