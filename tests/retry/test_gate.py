"""Outside deciders, honest, broken and hostile: no answer breaks a bound."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.retry.answers import AnswerError, read_answer
from clients.retry.gate import ask
from clients.retry.model import Context
from clients.retry.program import DeciderFailed, Program
from tests.retry.contexts import contexts, make
from tests.retry.test_rules import holds_its_bounds

GOOD: dict[str, Any] = {
    "decision": "retry",
    "retry_after_ms": 400,
    "backoff_strategy": "exponential",
    "lease_renewal_instruction": None,
    "starvation_risk": "low",
    "deadlock_detected": False,
    "explanation": "Two failures.",
}


def text(**changes: Any) -> str:
    return json.dumps({k: v for k, v in (GOOD | changes).items() if v != "absent"})


def answering(*answers: str | bytes) -> Callable[[bytes, float], bytes]:
    """A decider that gives these answers in turn, and fails the test if asked once more."""
    left = [a.encode() if isinstance(a, str) else a for a in answers]

    def outside(_: bytes, most_s: float) -> bytes:
        assert most_s > 0
        return left.pop(0)

    return outside


@pytest.mark.parametrize(
    "answer",
    [
        text(),
        f"```json\n{text()}\n```",
        f"Sure! Here {{it}} is:\n{text()}\nGood luck.",
        text(retry_after_ms="400"),
        text(retry_after_ms=400.0),
        text(decision=" Retry", deadlock_detected="false"),
        '{"decision": "retry", "backoff_ms": 400, "reasoning": "Two failures."}',
        "\ufeff" + text(),
        f"{text()}\n{text()}",
    ],
)
def test_lossless_cleaning(answer: str) -> None:
    found = read_answer(answer.encode(), "low")
    assert (found.decision, found.retry_after_ms) == ("retry", 400)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("", "empty"),
        ("I would retry.", "holds 0"),
        (text()[:-10], "character"),
        ('{"decision": {"decision": "abort", "reasoning": "x"}', "character"),
        (f"[{text()}]", "must be an object"),
        (text() + text(decision="abandon", retry_after_ms=None), "holds 2"),
        (text()[:-1] + ', "decision": "abandon"}', "given twice"),
        ("so: " + text()[:-1] + ', "decision": "abandon"}', "given twice"),
        (text().replace("400", "NaN"), "NaN"),
        (text().replace("400", "1e400"), "$.retry_after_ms"),
        (text(retry_after_ms="400 ms"), "$.retry_after_ms"),
        (text(retry_after_ms=True), "$.retry_after_ms"),
        (text(retry_after_ms=-1), "$.retry_after_ms"),
        (text(retry_after_ms=400.5), "$.retry_after_ms"),
        (text(retry_after_ms="absent"), "retry_after_ms"),
        (text(decision="wait"), "$.decision"),
        (text(starvation_risk="absent"), "$.starvation_risk"),
        (text(confidence=0.9), "$.confidence"),
        (text(backoff_ms=500), "$.backoff_ms"),
        (text(decision="escalate", retry_after_ms=None), "escalation_reason"),
        ('{"a":' * 20_000, ""),
        (b"\xff\xfe", "UTF-8"),
        ("x" * 100_000, "bytes"),
    ],
)
def test_no_guessing(answer: str | bytes, says: str) -> None:
    raw = answer.encode() if isinstance(answer, str) else answer
    with pytest.raises(AnswerError) as caught:
        read_answer(raw, "low")
    assert says in str(caught.value)


def test_the_alias_form_can_abandon_and_escalate() -> None:
    assert read_answer(b'{"decision": "abort", "reasoning": "x"}', "low").decision == "abandon"
    assert (
        read_answer(b'{"decision": "escalate", "reasoning": "x"}', "low").escalation_reason == "x"
    )


def test_one_repair_with_the_problems_then_the_default() -> None:
    requests = []

    def outside(request: bytes, _: float) -> bytes:
        requests.append(json.loads(request))
        return b"dunno" if len(requests) == 1 else text().encode()

    asked = ask(make(), outside)
    assert (asked.source, asked.calls, asked.decision.retry_after_ms) == ("outside", 2, 400)
    assert "repair" not in requests[0]
    assert requests[0]["lock_name"] == "orders"
    assert requests[1]["repair"]["answer"] == "dunno"
    assert requests[1]["repair"]["problems"]
    asked = ask(make(), answering("dunno", "dunno"))
    assert (asked.source, asked.calls, asked.decision.decision) == ("default", 2, "retry")
    assert "no usable answer" in asked.decision.explanation


@pytest.mark.parametrize(
    ("context", "answer", "decision", "delay_ms"),
    [
        ({}, {"retry_after_ms": 0}, "retry", 50),
        ({"latency_floor_ms": 90}, {"retry_after_ms": 1}, "retry", 90),
        ({"elapsed_wait_seconds": 20}, {"retry_after_ms": 10**14}, "retry", 10_000),
        ({}, {"deadlock_detected": True}, "escalate", None),
        ({"fairness_policy": "fifo", "queue_position": 9}, {"retry_after_ms": 1}, "retry", 850),
        ({"elapsed_wait_seconds": 30}, {"decision": "abandon"}, "escalate", None),
        ({"wait_for": [["w2", "w1"]]}, {}, "escalate", None),
        ({"failure_reason": "permission denied"}, {}, "abandon", None),
        ({"max_retries": 1}, {}, "escalate", None),
    ],
)
def test_bounds_bind(
    context: dict[str, Any], answer: dict[str, Any], decision: str, delay_ms: int | None
) -> None:
    asked = ask(make(**context), answering(text(**answer)), now_ns=lambda: 0)
    assert (asked.decision.decision, asked.decision.retry_after_ms) == (decision, delay_ms)


def test_the_time_of_the_decider_counts() -> None:
    readings = iter([0, 0, 0, 29_000_000_000])
    asked = ask(make(), answering(text()), now_ns=lambda: next(readings))
    assert asked.decision.decision == "escalate"


def test_a_decider_that_raises_hurts_nobody() -> None:
    def outside(_: bytes, __: float) -> bytes:
        raise ZeroDivisionError("oops")

    asked = ask(make(), outside)
    assert (asked.source, asked.calls, asked.decision.decision) == ("default", 1, "retry")
    assert "ZeroDivisionError" in asked.notes[0]


def test_the_share_of_the_budget_is_judged_at_the_failure() -> None:
    readings = iter([0, 0, 0, 10_000_000])
    context = make(elapsed_wait_seconds=24)
    asked = ask(context, answering(text()), now_ns=lambda: next(readings))
    assert (asked.decision.decision, asked.decision.retry_after_ms) == ("retry", 400)


words: st.SearchStrategy[Any] = st.sampled_from(
    ["retry", "escalate", "abandon", "abort", "low", "linear", "", "NaN", "400", None, True, [], {}]
)
numbers = st.integers(-5, 10**20) | st.floats() | st.booleans()
objects = st.dictionaries(
    st.sampled_from([*GOOD, "backoff_ms", "reasoning", "escalation_reason", "x"]), words | numbers
).map(lambda d: json.dumps(GOOD | d))
cut = st.builds(lambda t, n: t[: n % (len(t) + 1)], objects, st.integers(0, 300))
noise = st.builds(lambda a, t, b: a + t + b, st.text(max_size=9), objects, st.text(max_size=9))
raw = st.one_of(objects, cut, noise, st.text()).map(lambda t: t.encode(errors="replace"))


@given(contexts, st.lists(raw | st.binary(), min_size=2, max_size=2))
@settings(max_examples=300, deadline=None)
def test_no_answer_breaks_a_bound(context: Context, answers: list[bytes]) -> None:
    asked = ask(context, answering(*answers), now_ns=lambda: 0)
    holds_its_bounds(context, asked.decision)
    if context.elapsed_wait_seconds >= context.max_wait_budget_seconds:
        assert asked.decision.decision == "escalate"


def program(code: str, timeout_s: float = 10.0) -> Program:
    return Program([sys.executable, "-c", code], timeout_s)


def test_a_program_reads_the_context_and_is_believed() -> None:
    code = (
        f"import json, sys\nanswer = {GOOD!r}\n"
        "answer['explanation'] = json.load(sys.stdin)['lock_name']\nprint(json.dumps(answer))"
    )
    asked = ask(make(), program(code))
    assert (asked.source, asked.decision.explanation) == ("outside", "orders")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import sys; sys.exit(3)", "exit status 3"),
        ("import os; os.abort()", "exit status -6"),
        ("import sys\nwhile True: sys.stdout.write('x' * 65536)", "more than"),
        ("print('x' * 10_000_000)", "more than"),
        ("pass", "empty"),
    ],
)
def test_programs_that_break(code: str, says: str) -> None:
    asked = ask(make(), program(code))
    assert asked.source == "default"
    assert says in " ".join(asked.notes)
    assert asked.decision.decision == "retry"


def test_a_program_that_is_not_there() -> None:
    asked = ask(make(), Program(["/nonexistent/decider"]))
    assert "cannot start" in asked.notes[0]


def test_silence_ends_at_the_limit_and_takes_its_children_along(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    code = (
        "import os, subprocess, sys, pathlib\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        f"pathlib.Path({str(noted)!r}).write_text(str(child.pid))\n"
        "child.wait()\n"
    )
    began = time.monotonic()
    with pytest.raises(DeciderFailed, match=r"no answer within 1\.5 s"):
        program(code, 1.5)(b"{}", 60)
    assert time.monotonic() - began < 10
    pid = int(noted.read_text())
    deadline = time.monotonic() + 5
    while alive(pid):
        assert time.monotonic() < deadline, "the child outlived the time limit"


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def test_a_child_that_keeps_stdout_open_delays_nobody() -> None:
    code = (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        f"print({text()!r}, flush=True)\n"
    )
    assert json.loads(program(code, 30)(b"{}", 60)) == GOOD


def test_a_program_that_does_not_read_gets_no_say_in_the_time() -> None:
    big = b"x" * 2_000_000
    assert program("print('{}')")(big, 60).strip() == b"{}"
