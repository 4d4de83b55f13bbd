"""Reading and writing histories: round trips, torn ends, malformed lines, choice of format."""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.interchange import (
    detect_format,
    open_reader,
    porcupine_data,
    read_history,
    write_edn,
    write_history,
    write_jsonl,
    write_porcupine,
)
from checkers.interchange.linemap import LineMap
from checkers.interchange.parquet import ParquetReader
from harness.core.errors import UserError
from harness.core.history import Header, History, Op
from harness.core.result import Anomaly
from tests.checkers.histories import histories, no_deadline

LINE = '{"index":%d,"time":%d,"process":0,"type":"invoke","f":"acquire"}\n'


def put(tmp_path: Path, name: str, text: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# ------------------------------------------------------------------------------ round trips


@pytest.mark.parametrize("name", ["h.jsonl", "h.jsonl.gz", "h.edn", "h.edn.gz", "h.parquet"])
@no_deadline
@given(history=histories())
def test_every_format_gives_back_what_it_was_given(name: str, history: History) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / name
        assert write_history(history, path) == len(history)
        found = read_history(path)
        assert found.ops == history.ops
        assert found.header == history.header
        assert not found.torn
        # Equality alone would let 1 pass for True and 1.0.
        assert repr(found.ops) == repr(history.ops)


@no_deadline
@given(history=histories())
def test_formats_agree_when_chained(history: History) -> None:
    with tempfile.TemporaryDirectory() as directory:
        ops = history.ops
        for name in ("a.edn", "b.parquet", "c.jsonl"):
            path = Path(directory) / name
            write_history(History(ops, history.header), path)
            ops = read_history(path).ops
        assert ops == history.ops


def test_nanoseconds_and_tokens_beyond_double_precision(tmp_path: Path) -> None:
    value = {"token": 2**53 + 1, "deep": [2**100 + 1]}
    op = Op(0, 1_790_000_000_123_456_789, 0, "ok", "acquire", "k", value)
    for name in ("h.jsonl", "h.edn", "h.parquet"):
        write_history(History([op]), tmp_path / name)
        assert read_history(tmp_path / name).ops == [op]


def test_readers_stream(tmp_path: Path) -> None:
    ops = [Op(i, i, i % 3, "invoke", "acquire") for i in range(10)]
    for name in ("h.jsonl", "h.edn", "h.parquet"):
        write_history(History(iter(ops)), tmp_path / name)
        reader = open_reader(tmp_path / name)
        assert reader is not None
        first = iter(reader)
        assert next(first) == ops[0]
        assert list(first) == ops[1:]


# ------------------------------------------------------------------------------ JSON lines


def test_header_is_optional_and_honoured(tmp_path: Path) -> None:
    with_header = put(
        tmp_path,
        "a.jsonl",
        '{"schema":"lockhavoc/history/1","ttl_ns":10,"k":2,"initial":[1],"later":1}\n'
        + LINE % (0, 0),
    )
    found = read_history(with_header)
    assert (found.header.ttl_ns, found.header.k, found.header.initial) == (10, 2, [1])
    assert found.line(0) == 2
    without = read_history(put(tmp_path, "b.jsonl", LINE % (0, 0)))
    assert without.header == Header()
    assert without.line(0) == 1


@pytest.mark.parametrize("schema", ["lockhavoc/history/99", "other"])
def test_foreign_schema_is_refused(tmp_path: Path, schema: str) -> None:
    path = put(tmp_path, "a.jsonl", json.dumps({"schema": schema}) + "\n")
    with pytest.raises(UserError, match="line 1: schema is"):
        read_history(path)


def test_bad_header_field_is_named(tmp_path: Path) -> None:
    path = put(tmp_path, "a.jsonl", '{"schema":"lockhavoc/history/1","ttl_ns":"ten"}\n')
    with pytest.raises(UserError, match="ttl_ns"):
        read_history(path)


@pytest.mark.parametrize("cut", range(1, len(LINE % (1, 1)) - 1))
def test_torn_last_line_is_dropped_and_flagged(tmp_path: Path, cut: int) -> None:
    text = LINE % (0, 0) + (LINE % (1, 1))[:cut]
    found = read_history(put(tmp_path, "a.jsonl", text))
    assert found.torn
    assert [op.index for op in found] == [0]


def test_last_line_without_newline_but_whole_is_kept(tmp_path: Path) -> None:
    found = read_history(put(tmp_path, "a.jsonl", LINE % (0, 0) + (LINE % (1, 1)).rstrip("\n")))
    assert not found.torn
    assert len(found) == 2


def test_broken_line_with_a_newline_is_no_torn_line(tmp_path: Path) -> None:
    path = put(tmp_path, "a.jsonl", LINE % (0, 0) + '{"index":1,\n')
    with pytest.raises(UserError, match="line 2: not JSON"):
        read_history(path)


def test_last_line_that_is_json_but_no_event_is_not_torn(tmp_path: Path) -> None:
    path = put(tmp_path, "a.jsonl", LINE % (0, 0) + '{"index":1}')
    with pytest.raises(UserError, match="line 2: field 'time' is missing"):
        read_history(path)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"index":0,"time":5.0,"process":0,"type":"ok","f":"a"}', "'time' is 5.0, must be an int"),
        ('{"index":0,"time":true,"process":0,"type":"ok","f":"a"}', "'time' is True"),
        ('{"index":"0","time":1,"process":0,"type":"ok","f":"a"}', "'index' is '0'"),
        ('{"index":0,"time":1,"process":null,"type":"ok","f":"a"}', "'process' is None"),
        ('{"index":0,"time":1,"process":0,"type":"ok"}', "'f' is missing"),
        ('{"index":0,"time":1,"process":0,"type":"ok","f":"a","key":3}', "'key' is 3"),
        ('{"index":0,"time":1,"process":0,"type":"ok","f":"a","extra":3}', "'extra' is 3"),
        ("[1,2]", "a JSON array, must be an object"),
        ('"x"', "a JSON string, must be an object"),
        ("nonsense", "not JSON"),
        ('{"index":0} trailing', "not JSON"),
        ('{"index":0,"time":1,"process":0,"type":"ok","f":"a","value":' + "[" * 90_000, "deep"),
    ],
)
def test_malformed_line_is_named_with_rule(tmp_path: Path, line: str, says: str) -> None:
    path = put(tmp_path, "a.jsonl", LINE % (0, 0) + "\n" + line + "\n" + LINE % (1, 1))
    with pytest.raises(UserError) as error:
        read_history(path)
    assert says in str(error.value)
    assert "line 3" in str(error.value)
    assert error.value.exit_code == 254


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    path = put(tmp_path, "a.jsonl", b'{"index":0,"time":0,"process":0,"type":"ok","f":"\xff"}\n')
    with pytest.raises(UserError, match="line 1"):
        read_history(path)


def test_all_problems_are_told_at_once_up_to_a_limit(tmp_path: Path) -> None:
    path = put(tmp_path, "a.jsonl", "{}\n" * 3 + LINE % (0, 0) + "x\n" * 50)
    with pytest.raises(UserError) as error:
        read_history(path)
    assert len(error.value.problems) == 21
    assert error.value.problems[-1] == "and 33 more"


def test_blank_lines_windows_newlines_and_a_byte_order_mark(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf\r\n" + (LINE % (0, 0)).encode().replace(b"\n", b"\r\n")
    found = read_history(put(tmp_path, "a.jsonl", text + b"\n   \n" + (LINE % (1, 1)).encode()))
    assert [found.line(0), found.line(1)] == [2, 5]


def test_gzip_is_found_by_content_and_may_be_torn(tmp_path: Path) -> None:
    packed = gzip.compress("".join(LINE % (i, i) for i in range(2000)).encode())
    assert len(read_history(put(tmp_path, "a.jsonl", packed))) == 2000
    found = read_history(put(tmp_path, "b.jsonl.gz", packed[:-40]))
    assert found.torn
    assert 0 < len(found) < 2000
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 0xFF
    with pytest.raises(UserError, match=r"damaged|not a well-formed"):
        read_history(put(tmp_path, "c.jsonl.gz", bytes(damaged)))


def test_empty_file_is_an_empty_history(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.edn", "a"):
        found = read_history(put(tmp_path, name, ""))
        assert (len(found), found.torn) == (0, False)


@given(
    shifts=st.lists(st.integers(1, 3), max_size=30),
)
def test_line_map_is_exact(shifts: list[int]) -> None:
    lines, expected, line = LineMap(), [], 0
    for shift in shifts:
        line += shift
        lines.add(line)
        expected.append(line)
    assert [lines[i] for i in range(len(expected))] == expected
    with pytest.raises(IndexError):
        lines[len(expected)]


# ------------------------------------------------------------------------------ choice


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("h.jsonl", "", "jsonl"),
        ("h.NDJSON", "", "jsonl"),
        ("h.edn", "", "edn"),
        ("h.edn.gz", "", "edn"),
        ("h.json", '[{"index":0}]', "json"),
        ("h.json", '[\n  {\n "index":0}]', "json"),
        ("h.json", "[]", "json"),
        ("h.json", '{"index":0}', "jsonl"),
        ("h.txt", '{"index":0}', "jsonl"),
        ("h", "{:index 0}", "edn"),
        ("h", "#jepsen.history.Op{:index 0}", "edn"),
        ("h", "[{:index 0}]", "edn"),
        ("h", "({:index 0})", "edn"),
        ("h", "; a comment\n{:index 0}", "edn"),
    ],
)
def test_format_is_told_by_suffix_then_content(
    tmp_path: Path, name: str, text: str, format: str
) -> None:
    assert detect_format(put(tmp_path, name, text)) == format


def test_refusals_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"history\.edn beside it"):
        read_history(put(tmp_path, "test.jepsen", "JEPSEN\0\0"))
    with pytest.raises(UserError, match="say which with --format"):
        read_history(put(tmp_path, "h.bin", "\x00\x01"))
    with pytest.raises(UserError, match="No such file"):
        read_history(tmp_path / "absent.jsonl")
    with pytest.raises(UserError, match="must be auto or one of"):
        read_history(put(tmp_path, "h.jsonl", ""), format="csv")
    with pytest.raises(UserError, match=r"directory without history\.jsonl"):
        read_history(tmp_path)
    with pytest.raises(UserError, match="Jepsen's histories only"):
        read_history(tmp_path / "h.jsonl", independent=True)
    with pytest.raises(UserError, match="end it in"):
        write_history(History([]), tmp_path / "h.csv")
    with pytest.raises(UserError, match="cannot write"):
        write_jsonl([], tmp_path / "absent" / "h.jsonl")


def test_directory_of_a_run_means_its_history(tmp_path: Path) -> None:
    put(tmp_path, "history.jsonl", LINE % (0, 0))
    assert len(read_history(tmp_path)) == 1


# ------------------------------------------------------------------------------ Parquet


def test_parquet_refuses_what_it_cannot_hold(tmp_path: Path) -> None:
    path = tmp_path / "h.parquet"
    with pytest.raises(UserError, match="64-bit integers only"):
        write_history(History([Op(0, 2**63, 0, "ok", "a")]), path)
    with pytest.raises(UserError, match="as Parquet"):
        read_history(put(tmp_path, "x.parquet", "no"))


def test_parquet_of_somebody_else(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "h.parquet"
    columns: dict[str, Any] = {"index": [0, 1], "time": [0, 5], "type": ["invoke", "ok"]}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    with pytest.raises(UserError, match="lacks the columns process, f"):
        read_history(path)
    columns |= {"process": [0, 0], "f": ["read", None]}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    with pytest.raises(UserError, match=r"row 2: .*str"):
        read_history(path)
    columns |= {"f": ["read", "read"]}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    assert read_history(path).ops[1] == Op(1, 5, 0, "ok", "read")
    assert ParquetReader(path).header == Header()


def test_parquet_keeps_torn(tmp_path: Path) -> None:
    write_history(History([Op(0, 0, 0, "ok", "a")], torn=True), tmp_path / "h.parquet")
    assert read_history(tmp_path / "h.parquet").torn


def test_missing_pyarrow_is_one_clear_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match=r"pip install 'lockhavoc\[analysis\]'"):
        write_history(History([]), tmp_path / "h.parquet")


def test_pyarrow_is_not_imported_unless_asked() -> None:
    import subprocess

    code = "import sys, checkers.interchange as i; assert 'pyarrow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# ------------------------------------------------------------------------------ Porcupine view


def small() -> History:
    return History(
        [
            Op(0, 10, 0, "invoke", "acquire", "k", {"hold": "a"}),
            Op(1, 20, 0, "ok", "acquire", "k", {"hold": "a", "token": 7}),
            Op(2, 2**60 + 1, 1, "invoke", "acquire", "k"),
            Op(3, 2**60 + 2, "nemesis", "info", "pause", None, {"targets": ["w0"]}),
            Op(4, 2**60 + 3, 2, "invoke", "read", "other"),
            Op(5, 2**60 + 4, 2, "ok", "read", "other", 3),
            Op(6, 2**60 + 5, 3, "invoke", "acquire", "k"),
            Op(7, 2**60 + 6, 3, "fail", "acquire", "k", None, "busy"),
            Op(8, 2**60 + 7, 4, "invoke", "acquire", "k"),
            Op(
                9, 2**60 + 8, 4, "fail", "acquire", "k", None, "timed out"
            ),  # says nothing: not drawn
        ]
    )


def test_porcupine_view_has_the_fields_and_ranks_of_the_viewer(tmp_path: Path) -> None:
    anomaly = Anomaly(kind="double-grant", ops=[1, 2], says="both hold")
    data = porcupine_data(
        small(), linearizations={"k": [[(0, "held by 0")], []]}, anomalies=[anomaly]
    )
    assert [len(part["History"]) for part in data["Partitions"]] == [3, 1]
    first, second, refused = data["Partitions"][0]["History"]
    assert refused["Description"] == "acquire('k') -> refused (busy)"
    assert first == {
        "ClientId": 0,
        "Start": 0,
        "OriginalStart": "10",
        "End": 100,
        "OriginalEnd": "20",
        "Description": "acquire('k') -> token 7",
        "Metadata": "invoke 0, ok 1, hold a",
    }
    assert (second["Start"], second["End"], second["OriginalEnd"]) == (200, 900, "unknown")
    assert second["OriginalStart"] == str(2**60 + 1)
    assert data["Partitions"][0]["PartialLinearizations"] == [
        [{"Index": 0, "StateDescription": "held by 0"}],
        [],
    ]
    assert data["Partitions"][0]["Largest"] == {"0": 0}
    assert [note["Tag"] for note in data["Annotations"]] == ["nemesis", "anomaly"]
    assert data["Annotations"][1]["Start"] == 100
    assert all(note["Annotation"] is True for note in data["Annotations"])
    write_porcupine(small(), tmp_path / "p.json", anomalies=[anomaly])
    assert json.loads((tmp_path / "p.json").read_text())["Annotations"] == data["Annotations"]


@no_deadline
@given(history=histories())
def test_porcupine_view_of_anything_is_json_with_safe_integers(history: History) -> None:
    data = json.loads(json.dumps(porcupine_data(history)))
    for part in data["Partitions"]:
        for element in part["History"]:
            assert 0 <= element["Start"] < 2**53
            assert isinstance(element["ClientId"], int)


def test_edn_of_jepsen_asks_for_keys(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no key"):
        write_edn([Op(0, 0, 0, "invoke", "read")], tmp_path / "h.edn", independent=True)


def test_porcupine_view_escapes_what_the_viewer_takes_as_html() -> None:
    evil = "<img src=x onerror=alert(1)>"
    some = History(
        [
            Op(0, 0, 0, "invoke", "acquire", "k", {"owner": evil}),
            Op(1, 1, 0, "ok", "acquire", "k", {"owner": evil}),
        ]
    )
    part = porcupine_data(some, linearizations={"k": [[(0, evil)]]})["Partitions"][0]
    assert "<" not in part["History"][0]["Metadata"]
    assert "<" not in part["PartialLinearizations"][0][0]["StateDescription"]


GOOD = {
    "h.jsonl": '{"schema":"lockhavoc/history/1","k":2}\n' + LINE % (0, 0) + LINE % (1, 5),
    "h.edn": "{:index 0 :time 1 :type :invoke :process 0 :f :read :value #{nil}}\n"
    '#jepsen.history.Op{:index 1, :time 2, :type :ok, :process 0, :f :read, :value "\\u00e9"}\n',
}
PIECES = [
    b"{", b"}", b"[", b'"', b":", b",", b"\n", b"\\", b"#", b"#_", b";", b"-", b"\xff", b"\x00",
    b"1e999", b"9" * 5000, b'"\\ud800"', b"NaN", b":nemesis", b"",
]  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
@no_deadline
@given(
    edits=st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 6), st.sampled_from(PIECES)),
        min_size=1,
        max_size=4,
    )
)
def test_damaged_files_are_read_or_refused_but_never_crash(
    name: str, edits: list[tuple[float, int, bytes]]
) -> None:
    data = GOOD[name].encode()
    for share, length, piece in edits:
        at = int(share * len(data))
        data = data[:at] + piece + data[at + length :]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / name
        path.write_bytes(data)
        try:
            found = read_history(path)
        except UserError:
            return  # anything else that is raised fails the test
        write_history(found, path)
        assert len(read_history(path)) == len(found)
