"""Every example of the documentation is executed, and prints what the page says."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkers.api import ALIASES, MODEL_NAMES
from checkers.long import ALL_LOCKS
from harness import cli
from harness.judge_file import check_file
from tests.live.command import require

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CHECK = DOCS / "reference" / "check.md"
PAGES = [
    CHECK,
    DOCS / "how-to" / "check-a-history.md",
    DOCS / "how-to" / "ci.md",
    DOCS / "how-to" / "retry.md",
    DOCS / "how-to" / "scenario.md",
    DOCS / "how-to" / "servers.md",
    DOCS / "how-to" / "verify.md",
    DOCS / "how-to" / "write-a-worker.md",
    pytest.param(DOCS / "how-to" / "own-library.md", marks=pytest.mark.live),
    pytest.param(DOCS / "how-to" / "shared-locks.md", marks=pytest.mark.live),
    pytest.param(DOCS / "tutorial.md", marks=pytest.mark.live),
]
BLOCK = re.compile(
    r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)^```", re.DOTALL | re.M
)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """(command, what it should print) of a console block."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def pattern(shown: str) -> str:
    """``...`` stands for anything: within its line, or for any number of lines if alone."""
    lines = []
    for line in shown.splitlines(keepends=True):
        if line.strip() == "...":
            lines.append(r"(?:.*\n)*?")
        else:
            lines.append(re.escape(line).replace(re.escape("..."), r".*"))
    return "".join(lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_do_what_they_say(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if page.stem in ("tutorial", "own-library", "shared-locks"):
        require("process")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    names: dict[str, object] = {}
    code, ran = 0, 0
    for block in BLOCK.finditer(page.read_text()):
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["text"])
        elif block["kind"] == "python":
            exec(block["text"], names)
        elif block["kind"] == "console":
            for command, shown in commands(block["text"]):
                if command == "echo $?":
                    assert shown.strip() == str(code), page
                    continue
                monkeypatch.setattr(sys, "argv", shlex.split(command))
                code = cli._run()
                printed = "".join(capsys.readouterr())
                assert re.fullmatch(pattern(shown), printed), f"{command}\n{printed}"
                ran += 1
    assert ran >= 1


def test_the_reference_names_every_model_alias_and_option() -> None:
    text = CHECK.read_text()
    for name in (*MODEL_NAMES, *ALIASES, ALL_LOCKS):
        assert f"`{name}`" in text
    documented = set(re.findall(r"--[a-z][a-z-]*", text))
    options = {
        flag for option in check_file.params for flag in (*option.opts, *option.secondary_opts)
    }
    long = {flag for flag in options if flag.startswith("--")}
    assert documented <= long
    assert long - documented <= {"--drift-ppm", "--explain"}
