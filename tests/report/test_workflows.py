"""The workflows name what exists: scenario folders, options, releases; and pin what they use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compose.backends.spec import RELEASES
from harness.cli import cli

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
NIGHTLY = ROOT / ".github" / "workflows" / "nightly.yml"
REHEARSALS = {"demo", "sim"}  # run by ci.yml and by the tests


def words(text: str, name: str) -> set[str]:
    """The words of a list ``name: [a, b]``."""
    found = re.search(rf"^\s*{name}: \[([^\]]+)\]", text, re.M)
    assert found, name
    return {word.strip() for word in found[1].split(",")}


def test_the_night_covers_every_scenario_folder_and_release() -> None:
    text = NIGHTLY.read_text(encoding="utf-8")
    folders = {path.parent.name for path in (ROOT / "scenarios").glob("*/*.toml")}
    assert words(text, "backend") == folders - REHEARSALS
    assert words(text, "release") == set(RELEASES)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_options_of_the_command_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    used = re.findall(r"lockhavoc (\w+)([^\n]*)", text)
    for command, rest in used:
        found = cli.get_command(None, command)  # type: ignore[arg-type] # a lazy group needs none
        assert found is not None, command
        known = {flag for option in found.params for flag in option.opts}
        assert set(re.findall(r"(?<!\S)--[a-z-]+", rest)) <= known, command


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_rights_are_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    uses = re.findall(r"uses: (\S+)", text)
    assert uses
    for one in uses:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", one), one
    assert "permissions:\n  contents: read" in text
    assert text.count("persist-credentials: false") == text.count("actions/checkout@")
    for script in re.findall(r"run: (?:\|\n((?:\s{10,}.*\n)+)|(.*)\n)", text):
        assert "${{" not in "".join(script), "expressions go through env"
