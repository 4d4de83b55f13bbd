"""EDN: values of every kind, hostile text, Jepsen's histories in the shapes found in the wild."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.interchange import read_history, write_edn
from checkers.interchange.edn import EdnError, EdnSet, Keyword, dumps, loads
from harness.core.errors import UserError
from harness.core.history import Op
from tests.checkers.histories import INTEGERS, TEXT

KEYWORDS = st.from_regex(r"\A[a-z][a-z0-9\-?!*.]{0,6}\Z").map(Keyword)
SCALARS = st.one_of(st.none(), st.booleans(), INTEGERS, st.floats(allow_nan=False), TEXT, KEYWORDS)
EDN: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(EdnSet),
        st.dictionaries(st.one_of(TEXT, KEYWORDS, st.integers()), inner, max_size=4),
    ),
    max_leaves=12,
)


def shape(value: Any) -> Any:
    """The value with the types of all its parts, since 1 == True and Keyword("a") == "a"."""
    if isinstance(value, dict):
        return {(type(k), k): shape(v) for k, v in value.items()}
    if isinstance(value, list):
        return type(value), [shape(v) for v in value]
    return type(value), value


@given(value=EDN)
def test_values_round_trip_with_their_types(value: Any) -> None:
    assert shape(loads(dumps(value))) == shape(value)


@given(text=st.text(alphabet=' {}[]()#":;\\_,a1-.N\n', max_size=30))
def test_any_text_is_read_or_refused_but_never_crashes(text: str) -> None:
    try:
        loads(text)
    except EdnError:
        return


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nil", None),
        ("true", True),
        ("9007199254740993", 2**53 + 1),
        ("123456789012345678901234567890N", 123456789012345678901234567890),
        ("-7", -7),
        ("+7", 7),
        ("1.5e3", 1500.0),
        ("1M", 1.0),
        (r'"a\n\"\\\u00e9"', 'a\n"\\é'),
        (r'"\ud83d\ude00"', "😀"),
        ("\\newline", "\n"),
        ("\\a", "a"),
        ("\\u0041", "A"),
        ("##-Inf", float("-inf")),
        (":a/b", "a/b"),
        ("foo.bar/baz", "foo.bar/baz"),
        ("#{1 2}", [1, 2]),
        ("(1 2)", [1, 2]),
        ("[1,2,,3]", [1, 2, 3]),
        ("[1 #_2 3]", [1, 3]),
        ("[#_ #_ 1 2 3]", [3]),
        ("[#_ #tag 1 2]", [2]),
        ('#inst "2020-01-01"', "2020-01-01"),
        ("#a.B{:x 1}", {"x": 1}),
        ("#a #b 1", 1),
        ("{[1 2] 3}", {(1, 2): 3}),
        ("{:a {:b #{nil}}} ; tail", {"a": {"b": [None]}}),
        ('"two\nlines"', "two\nlines"),
    ],
)
def test_forms(text: str, value: Any) -> None:
    assert loads(text) == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{:a}", "no value"),
        ("{:a 1 :a 2}", "same key twice"),
        ("[1 2}", "should close"),
        ("]", "closes nothing"),
        ("[1 2", "ends inside a form"),
        ('"abc', "ends inside a form"),
        ("#tag", "ends inside a form"),
        ("[#tag]", "without a value"),
        ("1 2", "2 forms"),
        ("", "0 forms"),
        ("1/2", "not an EDN number"),
        ("007", "not an EDN number"),
        ("0x1F", "not an EDN number"),
        ("9" * 5000, "number"),
        (r'"\q"', "unknown escape"),
        (r'"\ud83d"', "surrogate"),
        ("\\nonsense", "unknown character"),
        ("##Foo", "unknown word"),
        ("[" * 5000, "nested deeper"),
        ("#!", "cannot read"),
        (": a", "cannot read"),
    ],
)
def test_refusals(text: str, says: str) -> None:
    with pytest.raises(EdnError, match=says):
        loads(text)


def test_tags_can_be_seen() -> None:
    assert loads("#x/y [1 #z 2]", tag=lambda tag, value: (tag, value)) == ("x/y", [1, ("z", 2)])


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(TypeError, match="no EDN form"):
        dumps(object())


# ------------------------------------------------------------------------------ histories

JEPSEN = """\
{:index 0, :time 318, :type :invoke, :process 0, :f :acquire, :value nil}
{:index 1, :time 500, :type :info, :process :nemesis, :f :part, :value [:all {"n1" #{"n2"}}]}
#jepsen.history.Op{:index 2, :time 9, :type :ok, :process 0, :f :get, :value {:t 9007199254740993}}
{:index 3, :time 950, :type :info, :process 1, :f :free, :error [:timeout "5 s"], :node "n3"}
"""


def edn(tmp_path: Path, text: str, **options: Any) -> list[Op]:
    path = tmp_path / "history.edn"
    path.write_text(text)
    return read_history(path, **options).ops


def test_jepsen_history(tmp_path: Path) -> None:
    assert edn(tmp_path, JEPSEN) == [
        Op(0, 318, 0, "invoke", "acquire"),
        Op(1, 500, "nemesis", "info", "part", None, ["all", {"n1": ["n2"]}]),
        Op(2, 9, 0, "ok", "get", None, {"t": 9007199254740993}),
        Op(3, 950, 1, "info", "free", None, None, '[:timeout "5 s"]', {"node": "n3"}),
    ]
    assert type(read_history(tmp_path / "history.edn").ops[1].process) is str


def test_vector_around_all_and_forms_over_lines(tmp_path: Path) -> None:
    pretty = "; a run\n\n[" + JEPSEN.replace(", ", "\n  ") + "]\n"
    (tmp_path / "history.edn").write_text(pretty)
    found = read_history(tmp_path / "history.edn")
    assert found.ops == edn(tmp_path, JEPSEN)
    (tmp_path / "history.edn").write_text(pretty)
    found = read_history(tmp_path / "history.edn")
    assert found.line(0) == 3
    line = found.line(1)
    assert line is not None
    assert pretty.splitlines()[line - 1].startswith("{:index 1")


def test_order_stands_for_missing_index_and_time(tmp_path: Path) -> None:
    text = "{:type :invoke :process 0 :f :read}\n{:type :ok :process 0 :f :read :value 3}\n"
    assert edn(tmp_path, text) == [
        Op(0, 0, 0, "invoke", "read"),
        Op(1, 1, 0, "ok", "read", None, 3),
    ]


def test_independent_keys(tmp_path: Path) -> None:
    tagged = "{:type :invoke :process 0 :f :cas :value #jepsen.independent/tuple [7 [1 2]]}\n"
    assert edn(tmp_path, tagged) == [Op(0, 0, 0, "invoke", "cas", "7", [1, 2])]
    vectors = "{:type :invoke :process 0 :f :cas :value [:x [1 2]]}\n"
    assert edn(tmp_path, vectors)[0].value == ["x", [1, 2]]
    assert edn(tmp_path, vectors, independent=True) == [Op(0, 0, 0, "invoke", "cas", "x", [1, 2])]
    nemesis = "{:type :info :process :nemesis :f :start :value nil}\n"
    assert edn(tmp_path, vectors + nemesis, independent=True)[1].process == "nemesis"
    with pytest.raises(UserError, match=r"line 2: :value is 3, must be a pair \[key value\]"):
        edn(tmp_path, vectors + "{:type :invoke :process 1 :f :w :value 3}", independent=True)


def test_written_as_independent_pairs_and_read_back(tmp_path: Path) -> None:
    ops = [Op(0, 5, 0, "invoke", "cas", "k", [1, 2]), Op(1, 6, "nemesis", "info", "kill")]
    write_edn(ops, tmp_path / "h.edn", independent=True)
    assert ':value ["k" [1 2]]' in (tmp_path / "h.edn").read_text()
    assert ":process :nemesis" in (tmp_path / "h.edn").read_text()
    assert read_history(tmp_path / "h.edn", independent=True).ops == ops


@pytest.mark.parametrize("cut", range(1, len(JEPSEN.splitlines()[0])))
def test_torn_end(tmp_path: Path, cut: int) -> None:
    (tmp_path / "history.edn").write_text(JEPSEN + JEPSEN.splitlines()[0][:cut])
    found = read_history(tmp_path / "history.edn")
    assert found.torn
    assert len(found) == 4


def test_torn_inside_a_character_and_a_vector(tmp_path: Path) -> None:
    whole = '[{:type :ok :process 0 :f :read :value "é"}\n {:type :ok :process 0 :f :w :value "é'
    (tmp_path / "history.edn").write_bytes(whole.encode()[:-1])
    found = read_history(tmp_path / "history.edn")
    assert found.torn
    assert [op.value for op in found] == ["é"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{:type :done :process 0 :f :read}", ':type is ":?done"'),
        ("{:type :ok :process 1.5 :f :read}", ":process is 1.5"),
        ("{:type :ok :process 0}", ":f is nil"),
        ("{:type :ok :process 0 :f :read :time 3}", ":time is given for some"),
        ("{:type :ok :process 0 :f", "ends inside a form"),
        ("[1 2 3]", "is not a map"),
        ("{:type}", "no value"),
    ],
)
def test_malformed_event_is_named_by_its_line(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(UserError, match=f"line 3: .*{says}"):
        edn(tmp_path, f"{{:type :ok :process 0 :f :read}}\n\n{line}\n")


def test_json_array_with_the_same_keys(tmp_path: Path) -> None:
    path = tmp_path / "h.json"
    path.write_text('[{"type":"invoke","process":0,"f":"acquire","value":null},\n{"type":"x"}]')
    with pytest.raises(UserError, match="element 2"):
        read_history(path)
    path.write_text('[{"type":"invoke","process":0,"f":"acquire","value":["k",1]}]')
    assert read_history(path).ops == [Op(0, 0, 0, "invoke", "acquire", None, ["k", 1])]
    assert read_history(path, independent=True).ops[0].key == "k"
    path.write_text('[{"type":')
    with pytest.raises(UserError, match="is not a JSON array"):
        read_history(path)
