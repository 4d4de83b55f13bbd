"""``check FILE --model M``: exit codes, the JSON document, text, exports, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from checkers.interchange import read_history, write_history
from harness.core.errors import UserError
from harness.core.history import Header, History, Op
from harness.core.result import Valid
from harness.judge_file import check_file, document, judge_file
from harness.schema_export import schema
from tests.checkers.sketch import history
from tests.harness.test_schema_export import fits

GOOD = "A a 0-2; R a 5-8; A b 1-7; R b 9-10"
BAD = "A a 0-2; R a 7-8; A b 3-5; R b 9-10"


@pytest.fixture
def file(tmp_path: Path) -> Any:
    """Writes a history in notation and returns its path."""

    def put(text: str, name: str = "history.jsonl", **options: Any) -> Path:
        path = tmp_path / name
        write_history(history(text, **options), path)
        return path

    return put


def run(*args: object) -> int:
    code = check_file.main([str(arg) for arg in args], standalone_mode=False)
    assert isinstance(code, int)
    return code


def shown(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """stdout as one JSON document and nothing else."""
    out = capsys.readouterr().out
    found = json.loads(out)
    assert isinstance(found, dict)
    assert out.count("\n") == 1
    return found


@pytest.mark.parametrize(
    ("text", "code", "valid"), [(GOOD, 0, "true"), (BAD, 1, "false"), ("A a 0-*", 2, "unknown")]
)
def test_exit_codes_and_verdicts(
    file: Any, capsys: pytest.CaptureFixture[str], text: str, code: int, valid: str
) -> None:
    assert run(file(text), "--model", "mutex", "--json") == code
    found = shown(capsys)
    assert (found["valid"], found["exit_code"]) == (valid, code)
    assert found["properties"]["mutex"]["valid"] == valid
    assert (found["missing"] is not None) == (code == 2)
    result, same = judge_file(file(text), "mutex")
    assert (result.valid, same) == (valid, code)


def test_the_document_fits_its_schema_and_names_lines(
    file: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file(BAD)
    run(path, "--model", "mutex", "--json")
    found = shown(capsys)
    assert fits(found, schema("verdict"))
    assert found["schema"] == "lockhavoc/verdict/1"
    assert found["decided_by"] == "monitor"
    assert found["exact"] is True
    (anomaly,) = found["anomalies"]
    assert anomaly["kind"] == "double-grant"
    assert anomaly["side"] == "service"
    assert anomaly["overlap_ns"] == 2
    assert "worker" in anomaly["picture"]
    lines = path.read_text().splitlines()
    for witness in anomaly["witnesses"]:
        assert json.loads(lines[witness["line"] - 1])["index"] == witness["index"]


def test_no_explain_is_without_picture(file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(file(BAD), "--model", "mutex", "--json", "--no-explain")
    assert "picture" not in shown(capsys)["anomalies"][0]


def test_text_says_it_in_the_first_line(file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = file(BAD)
    assert run(path, "--model", "mutex") == 1
    text = capsys.readouterr().out
    assert text.startswith(f"VIOLATED  mutex  {path}\n")
    assert "decided by: monitor, exact" in text
    assert "1. mutex: double-grant by the lock service" in text
    assert "legal if:" in text
    assert "\x1b" not in text
    assert run(file(GOOD), "--model", "mutex") == 0
    assert capsys.readouterr().out.startswith("OK  mutex")
    assert run(file("A a 0-*"), "--model", "mutex") == 2
    assert "missing: " in capsys.readouterr().out


def test_properties_of_a_lease(file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = file("A a 0-2; R a 20-21; A b 22-23")
    assert run(path, "--model", "lease", "--ttl-ms", "0.00001", "--json") == 0
    found = shown(capsys)["properties"]
    assert {name: part["valid"] for name, part in found.items()} == {
        "safe": "true",
        "exact": "false",
    }
    assert run(path, "--model", "lease", "--ttl-ms", "0.00001") == 0
    text = capsys.readouterr().out
    assert "  safe: ok" in text
    assert "  exact: violated" in text


def test_options_reach_the_models(file: Any) -> None:
    many = file("A a 0-1; A b 2-3; R a 6-7; R b 8-9")
    assert run(many, "--model", "semaphore", "--k", 2) == 0
    assert run(many, "--model", "semaphore", "--k", 1) == 1
    read = file("r a 0-1 v=7")
    assert run(read, "--model", "cas", "--initial", "7") == 0
    assert run(read, "--model", "cas", "--initial", "8") == 1
    text = History([Op(0, 0, 0, "invoke", "read"), Op(1, 1, 0, "ok", "read", None, "x")])
    write_history(text, read)
    assert run(read, "--model", "cas", "--initial", "x") == 0
    busy = file("A a 0-1; R a 2-3; A b 4-5 fail")
    assert run(busy, "--model", "mutex") == 0
    assert run(busy, "--model", "mutex", "--judge-busy") == 1


def test_every_engine_can_be_asked_for(file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for engine in ("monitor", "wgl", "frontier"):
        assert run(file(BAD), "--model", "mutex", "--engine", engine, "--json") == 1
        assert engine in shown(capsys)["decided_by"]


@pytest.mark.parametrize("name", ["h.edn", "h.edn.gz", "h.parquet", "h.jsonl.gz"])
def test_every_format(file: Any, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file(BAD, name), "--model", "mutex", "--json") == 1
    witnesses = shown(capsys)["anomalies"][0]["witnesses"]
    assert all(("line" in witness) == ("parquet" not in name) for witness in witnesses)


def test_exports(file: Any, tmp_path: Path) -> None:
    path = file(BAD)
    edn, view = tmp_path / "out.edn", tmp_path / "out.json"
    assert run(path, "--model", "mutex", "--export-edn", edn, "--export-porcupine", view) == 1
    assert read_history(edn).ops == read_history(path).ops
    data = json.loads(view.read_text())
    assert len(data["Partitions"][0]["History"]) == 4
    assert [note["Description"] for note in data["Annotations"]] == ["double-grant"]


def test_torn_files_are_judged_and_said(file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = file(GOOD)
    path.write_bytes(path.read_bytes()[:-5])
    assert run(path, "--model", "mutex", "--json") == 0
    assert shown(capsys)["torn"] is True
    run(path, "--model", "mutex")
    assert "torn" in capsys.readouterr().out


def test_malformed_files_are_named_by_line_and_exit_254(file: Any) -> None:
    path = file(GOOD)
    lines = path.read_text().splitlines(keepends=True)
    lines[3] = lines[3].replace('"process":0', '"process":7').replace('"process":1', '"process":8')
    path.write_text("".join(lines).replace('"type":"ok"', '"type":"okay"', 1))
    with pytest.raises(UserError) as error:
        run(path, "--model", "mutex")
    assert error.value.exit_code == 254
    assert any("line " in problem for problem in error.value.problems)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--model", "mutx"], "did you mean 'mutex'"),
        (["--model", "lease"], "--ttl-ms"),
        (["--model", "belief"], "--ttl-ms"),
        (["--model", "semaphore"], "--k"),
        (["--model", "mutex", "--k", "2"], "has no option k"),
        (["--model", "mutex", "--independent"], "Jepsen's histories only"),
        (["--model", "mutex", "--export-edn", "/absent/dir/x.edn"], "cannot write"),
    ],
)
def test_refusals(file: Any, args: list[str], says: str) -> None:
    with pytest.raises(UserError, match=says):
        run(file(GOOD), *args)


def test_usage_errors_are_clicks(file: Any) -> None:
    path = file(GOOD)
    for args in ([path], [path, "--model", "mutex", "--engine", "x"], ["--model", "mutex"]):
        with pytest.raises(click.UsageError):
            run(*args)


def test_missing_file_is_one_clear_message(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        run(tmp_path / "absent.jsonl", "--model", "mutex")


def test_header_values_are_honoured(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    write_history(History(history("A a 0-2; A b 3-8").ops, Header(ttl_ns=10)), path)
    assert run(path, "--model", "lease") == 1
    assert run(path, "--model", "lease", "--ttl-ms", "0.000003") == 0


def test_secrets_and_escapes_do_not_get_out(tmp_path: Path) -> None:
    some = history(BAD, key="redis://:hunter2@h\x1b[2J")
    result, _ = judge_file(_written(some, tmp_path), "mutex")
    found = document(result, {}, file="x", model="mutex")
    from harness.report.verdict import render

    assert "hunter2" not in render(found)
    assert "\x1b" not in render(found)
    assert found.valid is Valid.FALSE


def _written(some: History, tmp_path: Path) -> Path:
    path = tmp_path / "h.jsonl"
    write_history(some, path)
    return path
