"""Reports: what they must show, in every form, and what no foreign string may do to them."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from typing import IO

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.result import Anomaly, Result, Valid
from harness.report.document import RunReport, document, load, masked, replay_line
from harness.report.escape import clean, markdown, mask, mask_all, mask_argv, safe
from harness.report.junit import junit
from harness.report.markdown import summary
from harness.report.text import milliseconds, print_text, render_text
from tests.harness.reports import HOSTILE, SECRET, full, hostile

# What a terminal could act on, or what could make a line read as another.
ACTIVE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# ------------------------------------------------------------------------------ escaping


@given(text=st.text(alphabet=st.characters()))
def test_clean_leaves_one_harmless_line(text: str) -> None:
    found = clean(text)
    assert not ACTIVE.search(found)
    assert "\n" not in found
    found.encode()  # no surrogate is left


def test_clean_keeps_what_is_harmless() -> None:
    assert clean("Zürich — 東京 ✅") == "Zürich — 東京 ✅"
    assert clean("a\nb\x1b[0m\u202e") == r"a\nb\x1b[0m\u202e"


@pytest.mark.parametrize(
    "text",
    [
        "password=hunter2",
        "PASSWORD = 'hunter2'",
        'DB_PASSWORD="hunter2 x"',
        "password: hunter2",
        "client_secret=hunter2&x=1",
        "api_key=hunter2",
        "redis://:hunter2@127.0.0.1:6379/0",
        "redis://user:hunter2@127.0.0.1",
        "postgresql://u:hunter2@127.0.0.1/db?sslmode=off",
        '{"password": "hunter2", "x": 1}',
        "{'requirepass': 'hunter2'}",
        '{"db-password":"hunter2\\" x"}',
        "--password hunter2",
        "requirepass hunter2",
        "Authorization: Bearer hunter2",
        "pass=hunter2",
    ],
)
def test_secrets_are_masked(text: str) -> None:
    assert SECRET not in mask(text)
    assert "***" in mask(text)


@pytest.mark.parametrize(
    "text",
    [
        "token=7",
        "bypass=3 passed=5",
        "http://127.0.0.1:8474/proxies",
        "a@b",
        "the password was wrong",
        "owner: w1",
        "redis://127.0.0.1:6379",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask(text) == text


def test_masking_of_command_lines_and_data() -> None:
    argv = ["run", "x.toml", "--password", SECRET, "--redis-url", f"redis://:{SECRET}@h", "-v"]
    assert mask_argv(argv) == [
        "run", "x.toml", "--password", "***", "--redis-url", "redis://:***@h", "-v",
    ]  # fmt: skip
    assert mask_argv(["--password=x", "y"]) == ["--password=***", "y"]
    data = {"password": SECRET, "list": [{"secret": SECRET, "bypass": 3}], "token": 7}
    assert mask_all(data) == {
        "password": "***", "list": [{"secret": "***", "bypass": 3}], "token": 7,
    }  # fmt: skip


@given(text=st.text())
def test_markdown_has_no_markup_left(text: str) -> None:
    assert not re.search(r"[|`<>*_\[\]@~\\\n]", markdown(text))


# ------------------------------------------------------------------------------ document


def test_document_round_trips_and_is_indented_json() -> None:
    report = full()
    data = document(report)
    assert load(data) == report
    assert data.endswith(b"}\n")
    assert json.loads(data)["valid"] == {"safety": "false", "liveness": "true"}
    assert json.loads(data)["schema"] == "lockhavoc/results/1"


def test_document_has_no_secrets() -> None:
    report = msgspec.structs.replace(full(), failures=["redis://:hunter2@h"], replay=["--pwd", "h"])
    assert b"hunter2" not in document(report)
    assert masked(report).replay == ["--pwd", "***"]


def test_document_of_somebody_else_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        load(b'{"nonsense": 1}')


# ------------------------------------------------------------------------------ text


def test_text_says_what_must_be_said() -> None:
    text = render_text(full())
    for part in (
        "AS CLAIMED  redis-holder-pause",
        "claimed: violation by fencing: nothing fences",
        "found:   safety VIOLATED, liveness ok",
        "1. fencing: stale-write-accepted by the resource, key k0, ops 3 9, overlap 1.250 ms",
        "legal if: the resource had refused token 1",
        "   w0 |--A--|\n   w1     |--B--|",
        "worker-pause on w1 when held, 1000.000 ms to 3000.500 ms, bit, healed: state T",
        "NO EVIDENCE that it bit, NOT healed",
        "harness: logs of redis could not be copied",
        "redis 8.0.2, toxiproxy 2.12.0",
        "seed 7",
        "store/redis-holder-pause/20261130T120000.000Z",
    ):
        assert part in text
    assert re.search(r"cas +n/a", text)
    assert re.search(r"liveness \(liveness\) +ok", text)
    last = text.rstrip("\n").split("\n")[-1]
    assert last == "repeat:  lockhavoc run 'scenarios/redis/holder pause.toml' --seed 7"


def test_replay_line_is_never_broken() -> None:
    report = msgspec.structs.replace(full(), replay=["lockhavoc", "x" * 300])
    assert f"repeat:  lockhavoc {'x' * 300}\n" in render_text(report, width=40)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def printed(file: IO[str]) -> str:
    print_text(full(), file)
    file.seek(0)
    return file.read()


def test_colours_only_on_a_terminal_that_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[" not in printed(io.StringIO())
    assert "\x1b[" in printed(Terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b[" not in printed(Terminal())
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", printed(Terminal()))


def test_text_is_bounded_when_there_are_many_anomalies() -> None:
    many = [Anomaly(kind="x", says="y") for _ in range(60)]
    report = full()
    report.results = [Result(checker="c", valid=Valid.FALSE, anomalies=many)]
    assert "... and 57 more" in render_text(report)


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [(0, "0.000 ms"), (1_250_999, "1.250 ms"), (-1_500_000, "-1.500 ms"),
     (9_007_199_254_740_993_000_000, "9007199254740993.000 ms")],
)  # fmt: skip
def test_milliseconds_are_exact(time_ns: int, text: str) -> None:
    assert milliseconds(time_ns) == text


# ------------------------------------------------------------------------------ JUnit

# The schema most CI systems use (junit-10.xsd of Jenkins' xUnit plugin), as tables: allowed
# children, required attributes, optional attributes.  "error" is its "errors", as all tools write.
ELEMENTS: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": ({"testsuite"}, set(), {"name", "time", "tests", "failures", "errors"}),
    "testsuite": (
        {"properties", "testcase", "system-out", "system-err"},
        {"name", "tests", "failures", "errors"},
        {"time", "skipped", "timestamp", "hostname"},
    ),
    "properties": ({"property"}, set(), set()),
    "property": (set(), {"name", "value"}, set()),
    "testcase": (
        {"skipped", "error", "failure", "system-out", "system-err"},
        {"name"},
        {"time", "classname"},
    ),
    "skipped": (set(), set(), {"type", "message"}),
    "error": (set(), set(), {"type", "message"}),
    "failure": (set(), set(), {"type", "message"}),
    "system-out": (set(), set(), set()),
    "system-err": (set(), set(), set()),
}
TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]{0,3})?")


def validate(element: ET.Element) -> None:
    children, required, optional = ELEMENTS[element.tag]
    assert required <= set(element.keys()) <= required | optional
    assert TIME.fullmatch(element.get("time", "0"))
    if element.tag == "testsuite":
        cases = element.findall("testcase")
        assert int(element.get("tests", "-1")) == len(cases)
        for attribute, tag in (("failures", "failure"), ("errors", "error")):
            assert int(element.get(attribute, "-1")) == len(element.findall(f"testcase/{tag}"))
        assert sum(case.find("skipped") is not None for case in cases) == int(
            element.get("skipped", "-1")
        )
    for child in element:
        assert child.tag in children
        validate(child)


def cases(report: RunReport) -> dict[str, ET.Element]:
    root = ET.fromstring(junit([report]))
    validate(root)
    return {case.get("name", ""): case for case in root.iter("testcase")}


def test_junit_of_a_violation_as_claimed_passes() -> None:
    found = cases(full())
    assert list(found) == ["claim", "fencing", "lease", "cas", "vacuity", "liveness"]
    assert all(case.find("failure") is None for case in found.values())
    out = found["fencing"].findtext("system-out") or ""
    assert "stale-write-accepted" in out
    assert "w1     |--B--|" in out
    assert found["cas"].find("skipped") is not None
    assert found["vacuity"].findtext("system-err") == "Tr:\n  x"


@pytest.mark.parametrize(
    ("verdict", "code", "tag"),
    [
        ("violation", 1, "failure"),
        ("canary-passed", 1, "failure"),
        ("other-than-claimed", 1, "failure"),
        ("unknown", 2, "error"),
        ("harness-failure", 255, "error"),
        ("interrupted", 130, "error"),
    ],
)
def test_junit_maps_outcomes(verdict: str, code: int, tag: str) -> None:
    report = msgspec.structs.replace(full(), verdict=verdict, exit_code=code, says="so it is")
    found = cases(report)
    child = found["claim"].find(tag)
    assert child is not None
    assert child.get("message") == "so it is"
    assert "repeat: lockhavoc run" in (child.text or "")
    assert found["fencing"].find("failure") is not None


def test_junit_properties_and_many_runs() -> None:
    root = ET.fromstring(junit([full(), full()]))
    validate(root)
    assert root.get("tests") == "12"
    assert root.get("time") == "24.690"
    suite = root[0]
    values = {p.get("name"): p.get("value") for p in suite.iter("property")}
    assert values["seed"] == "7"
    assert values["scenario"] == "0123456789abcdef"
    assert values["runtime"] == "process"
    assert values["replay"] == replay_line(full())
    assert suite.get("timestamp") == "2026-11-30T12:00:00"


# ------------------------------------------------------------------------------ Markdown


def test_markdown_summary() -> None:
    broken = msgspec.structs.replace(full(), verdict="violation", exit_code=1, says="it broke")
    text = summary([full(), broken])
    rows = [line for line in text.split("\n") if line.startswith("| ")]
    assert len(rows) == 3
    assert all(row.count("|") == 7 for row in rows)
    assert text.count("#### ") == 1  # only what did not go as claimed is told at length
    assert "```text\nw0 |--A--|\nw1     |--B--|\n```" in text
    assert "lockhavoc run 'scenarios/redis/holder pause.toml' --seed 7" in text


def test_markdown_is_cut_at_whole_runs() -> None:
    broken = msgspec.structs.replace(full(), verdict="violation", exit_code=1)
    text = summary([broken] * 100, bytes_max=20_000)
    assert len(text.encode()) <= 20_000
    assert "parts left out" in text
    assert text.count("```") % 2 == 0


def test_a_fence_is_longer_than_what_it_holds() -> None:
    report = msgspec.structs.replace(full(), verdict="violation", exit_code=1)
    report.results[0].anomalies[0].picture = "a\n````\n<b>"
    assert "`````text\na\n````\n<b>\n`````" in summary([report])


# ------------------------------------------------------------------------------ hostile strings


def test_hostile_strings_are_harmless_everywhere() -> None:
    report = hostile()
    text = render_text(report)
    assert not ACTIVE.search(text)
    assert "[bold red]hi[/]" in text  # shown, not obeyed
    xml = junit([report])
    validate(ET.fromstring(xml))
    md = summary([report])
    assert not ACTIVE.search(md)
    outside = re.sub(r"(`{3,})text\n.*?\n\1", "", md, flags=re.DOTALL)
    assert "<script>" not in outside
    assert "@team" not in outside
    assert "](http" not in outside
    for shown in (text, xml.decode(), md, safe(HOSTILE)):
        assert SECRET not in shown
    coloured = render_text(report, colour=True)
    assert not re.search(r"\x1b(?!\[[0-9;]*m)", coloured)  # rich's own colours and nothing else


def test_hostile_document_is_masked() -> None:
    found = document(hostile())
    assert SECRET.encode() not in found
    assert b"\x1b" not in found
    assert load(found).name.startswith("\x1b[2J")  # kept in the data, escaped only when shown
