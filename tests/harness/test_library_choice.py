"""Choices of the command line: into the scenario, its plan and the line that repeats a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness import plan as plans
from harness.cli import run_command
from harness.core.errors import UserError
from harness.library_choice import apply, settle_for
from harness.library_options import NOTHING, Chosen
from harness.scenario import Scenario, load, parse

DATA: dict[str, Any] = {
    "name": "x",
    "claim": {"verdict": "violation", "by": ["lease"], "why": "of its defect"},
    "client": {"library": "redis-py", "with": ["redis==2.10.6"], "options": {"sleep_ms": 10}},
}


def scenario(**more: Any) -> Scenario:
    return parse({**DATA, **more})


def test_what_was_chosen_replaces_the_files_and_is_in_the_plan(tmp_path: Path) -> None:
    chosen = apply(scenario(), Chosen(with_=("redis==5.0.0", "hiredis==3.0.0")))
    assert chosen.client.with_ == ("redis==5.0.0", "hiredis==3.0.0")
    assert chosen.digest() != scenario().digest()
    path = tmp_path / "plan.json"
    path.write_bytes(plans.dump(plans.draw(chosen, 7)))
    assert plans.load(path)[0] == chosen
    assert apply(scenario(), NOTHING) == scenario()


def test_a_choice_leaves_the_drawn_faults_as_they_were() -> None:
    one = {"kind": "worker-pause", "start_ms": [500, 5000], "duration_ms": [500, 5000]}
    before = scenario(faults=[one])
    after = apply(before, Chosen(with_=("redis==5.0.0",)))
    assert plans.draw(before, 3).faults == plans.draw(after, 3).faults


def test_an_adapter_takes_the_librarys_place_and_not_its_options() -> None:
    chosen = apply(scenario(), Chosen(adapter="my_adapter.py"))
    assert (chosen.client.library, chosen.client.options) == ("my_adapter", {})
    assert chosen.client.adapter == str(Path.cwd() / "my_adapter.py")


def test_an_interpreter_takes_the_place_of_versions_of_the_file() -> None:
    chosen = apply(scenario(), Chosen(python="bin/python"))
    assert (chosen.client.python, chosen.client.with_) == (str(Path.cwd() / "bin/python"), ())


def test_the_digest_of_a_plain_scenario_knows_nothing_of_choices() -> None:
    plain = parse({**DATA, "client": {"library": "redis-py"}})
    assert plain.digest() == parse({**DATA, "client": {"library": "redis-py", "with": []}}).digest()


MUSEUM = {
    "report": "https://example.org/1",
    "defect": "it releases what it does not hold",
    "faulty": "below 3.0",
    "fixed_with": ["redis==3.0.1"],
}


def test_the_fixed_version_of_a_museum_piece_must_hold() -> None:
    chosen = apply(scenario(museum=MUSEUM), Chosen(fixed=True))
    assert chosen.claim.verdict == "holds"
    assert chosen.client.with_ == ("redis==3.0.1",)
    assert chosen.name == "x-fixed"


def test_a_scenario_without_a_fixed_version_says_so() -> None:
    with pytest.raises(UserError, match=r"names no fixed version \(\[museum\] fixed_with\)"):
        apply(scenario(), Chosen(fixed=True))


def test_the_simulator_takes_no_choice() -> None:
    with pytest.raises(UserError, match="the simulator runs no library"):
        settle_for(scenario(), "sim", progress=print)


def test_the_options_stand_in_the_line_that_repeats_the_run() -> None:
    chosen = Chosen(with_=("redis>=5,<6", "a==1"), adapter="my adapter.py", fixed=True)
    words = "--with 'redis>=5,<6' --with a==1 --adapter 'my adapter.py' --fixed"
    assert " ".join(chosen.words()) == words
    assert NOTHING.words() == []


def test_the_command_takes_them(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text('name = "x"\n[claim]\nverdict = "holds"\n[client]\nlibrary = "redis-py"\n')
    result = CliRunner().invoke(
        run_command, [str(file), "--runtime", "process", "--with", "-e .", "--store", str(tmp_path)]
    )
    assert isinstance(result.exception, UserError)
    assert "client.with[0]: '-e .' is no requirement" in str(result.exception)


def test_files_that_a_scenario_names_stand_beside_it(tmp_path: Path) -> None:
    """They go into plans as absolute paths, and the digest knows their names alone."""
    text = 'name = "x"\n[claim]\nverdict = "holds"\n[client]\nlibrary = "mine"\n'
    digests = set()
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        (folder / "x.toml").write_text(text + 'adapter = "adapters/mine.py"\n')
        scenario = load(folder / "x.toml")
        assert scenario.client.adapter == str(folder / "adapters" / "mine.py")
        digests.add(scenario.digest())
    assert len(digests) == 1


def test_a_fixed_library_runs_without_the_faulty_ones_adapter() -> None:
    client = {"library": "old", "with": ["old==1.0"], "adapter": "/x/old.py"}
    museum = {**MUSEUM, "fixed_with": ["redis==8.1.0"], "fixed_library": "redis-py"}
    chosen = apply(scenario(client=client, museum=museum), Chosen(fixed=True))
    assert (chosen.client.library, chosen.client.adapter) == ("redis-py", None)
