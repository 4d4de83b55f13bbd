"""``lockhavoc retry decide`` as a program: what goes to stdout, and the exit codes."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from typing import Any
from unittest import mock

from harness import cli
from tests.retry.contexts import BASE


def lockhavoc(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """``lockhavoc WORDS`` in this process, which spares a second of imports each time."""
    out, err = io.StringIO(), io.StringIO()
    source = io.TextIOWrapper(io.BytesIO(stdin.encode()))
    with (
        mock.patch.object(sys, "argv", ["lockhavoc", *words]),
        mock.patch.object(sys, "stdin", source),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = cli._run()
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def test_as_a_process() -> None:
    argv = [sys.executable, "-m", "harness.cli", "retry", "decide"]
    done = subprocess.run(argv, input=context(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["decision"] == "retry"


def context(**changes: Any) -> str:
    return json.dumps(BASE | changes)


def test_one_object_on_stdout() -> None:
    done = lockhavoc("retry", "decide", stdin=context(wait_for=[["w2", "w1"]]))
    assert (done.returncode, done.stderr) == (0, "")
    decision = json.loads(done.stdout)
    assert (decision["decision"], decision["deadlock_detected"]) == ("escalate", True)
    assert "retry_after_ms" not in decision


def test_every_problem_and_its_path() -> None:
    done = lockhavoc("retry", "decide", stdin=context(lock_name="", consecutive_failures=2.5))
    assert (done.returncode, done.stdout) == (254, "")
    assert "$.lock_name" in done.stderr
    assert "$.consecutive_failures" in done.stderr


def test_a_decider_that_fails_still_gives_a_decision() -> None:
    words = ("retry", "decide", "--decider", "command", "--command", "false")
    done = lockhavoc(*words, stdin=context())
    assert done.returncode == 0
    assert json.loads(done.stdout)["decision"] == "retry"
    assert "exit status 1" in done.stderr


def test_options_that_do_not_fit() -> None:
    for words in (
        ("--decider", "llm"), ("--decider", "command"), ("--command", "x"),
        ("--decider", "llm", "--llm-url", "http://127.0.0.1:9"), ("--llm-key-env", "HOME"),
        ("--decider", "command", "--command", "'x"), ("--decider", "nobody"),
    ):  # fmt: skip
        done = lockhavoc("retry", "decide", *words, stdin=context())
        assert (done.returncode, done.stdout) == (254, "")
        assert "--" in done.stderr
