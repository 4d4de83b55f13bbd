"""What a run shows while it goes on: a moving screen on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import os
import pty
from collections.abc import Iterator

import pytest

from harness.core.clock import NS_PER_S
from harness.report.live import Held, Moment, Plain, Screen, display, line, screen
from tests.harness.reports import HOSTILE

MOMENT = Moment(
    name="holder-pause",
    now_ns=3 * NS_PER_S,
    until_ns=8 * NS_PER_S,
    events=120,
    holds=[Held(3, "k0", NS_PER_S, 2 * NS_PER_S), Held(1, "k1", 2 * NS_PER_S, 4 * NS_PER_S)],
    waiting=[2, 0],
    faults="faults 1/2 (worker-pause w3)",
    harmed=True,
)


def test_the_line_names_holders_and_faults() -> None:
    assert line(MOMENT) == (
        "    3 s  120 events  holds k0: w3, k1: w1  faults 1/2 (worker-pause w3)"
    )


def test_the_screen_says_whose_lease_is_over() -> None:
    assert screen(MOMENT).plain.splitlines() == [
        "holder-pause  3.0 of 8.0 s  120 events",
        "  k0 w3 since 2.0 s, lease over for 1.0 s",
        "  k1 w1 since 1.0 s, lease ends in 1.0 s",
        "  waiting: w0 w2",
        "  faults 1/2 (worker-pause w3)",
    ]


def test_foreign_strings_cannot_drive_the_terminal() -> None:
    hold = Held(0, HOSTILE, 0, None)
    moment = Moment(name=HOSTILE, now_ns=0, until_ns=1, events=0, holds=[hold], faults=HOSTILE)
    for text in (line(moment), screen(moment).plain):
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "hunter2" not in text


def test_a_pipe_gets_plain_lines() -> None:
    out = io.StringIO()
    progress = display(quiet=False, file=out)
    assert isinstance(progress, Plain)
    progress("starting")
    progress.rest()
    assert out.getvalue() == "starting\n"


def test_quiet_says_nothing() -> None:
    out = io.StringIO()
    progress = display(quiet=True, file=out)
    progress("starting")
    assert out.getvalue() == ""


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    """What a terminal receives while a run shows two moments."""
    for name in ("NO_COLOR", "TERM", "CI", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", **environment}.items():
        monkeypatch.setenv(name, value)
    master, slave = pty.openpty()
    try:
        with os.fdopen(slave, "w") as terminal:
            progress = display(quiet=False, file=terminal)
            progress("starting")
            if isinstance(progress, Screen):
                progress.show(MOMENT)
            progress.rest()
        return "".join(received(master))
    finally:
        os.close(master)


def received(master: int) -> Iterator[str]:
    """Everything that was written to a terminal that is closed by now."""
    while True:
        try:
            chunk = os.read(master, 1 << 16)
        except OSError:  # EIO: closed, and nothing is left
            return
        yield chunk.decode()


def test_a_terminal_gets_the_moving_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    text = on_a_terminal(monkeypatch)
    assert "starting" in text
    assert "lease over for 1.0 s" in text
    assert "\x1b[1;31m" in text, "an overdue lease is red"
    assert text.rstrip().endswith(("\x1b[2K", "\x1b[?25h")), "and it is wiped at the end"


def test_no_color_leaves_the_colours_out(monkeypatch: pytest.MonkeyPatch) -> None:
    text = on_a_terminal(monkeypatch, NO_COLOR="1")
    assert "lease over for 1.0 s" in text
    assert "31m" not in text
    assert "36m" not in text


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_a_terminal(monkeypatch, TERM="dumb") == "starting\r\n"
