"""The rules of the protected resource against a model, and what survives a restart."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.resource.export import records
from clients.resource.store import MODES, Store, Write
from harness.core.errors import HarnessError, UserError

KEYS = ("a", "b")
RESTART = "restart"
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # thousands of syncs are slow on a disk
VALUES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5)
WRITES = st.builds(
    Write,
    st.sampled_from(KEYS),
    hold=st.none() | st.sampled_from(["0-1", "1-1"]),
    token=st.none() | st.integers(0, 6),
    value=VALUES,
    expect=st.none() | st.integers(0, 4),
)


class Model:
    """The three modes in the plainest words, from the list of accepted writes alone."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.accepted: list[Write] = []

    def of(self, key: str) -> list[Write]:
        return [write for write in self.accepted if write.key == key]

    def highest(self, key: str) -> int | None:
        tokens = [write.token for write in self.of(key) if write.token is not None]
        return max(tokens) if tokens else None

    def write(self, write: Write) -> str:
        highest, version = self.highest(write.key), len(self.of(write.key))
        if self.mode == "fenced" and write.token is None:
            return "no-token"
        if self.mode == "fenced" and highest is not None and (write.token or 0) < highest:
            return "stale"
        if self.mode == "cas" and write.expect is None:
            return "no-expect"
        if self.mode == "cas" and write.expect != version:
            return "mismatch"
        self.accepted.append(write)
        return ""


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=40, deadline=None)
@given(steps=st.lists(WRITES | st.just(RESTART), max_size=25))
def test_every_mode_equals_its_model_also_over_restarts(
    mode: str, steps: list[Write | str]
) -> None:
    directory = Path(tempfile.mkdtemp(prefix="lockhavoc-test-", dir=MEMORY))
    store, model, expected = Store(directory, mode), Model(mode), []
    try:
        for step in steps:
            if isinstance(step, str):
                store.close()
                store = Store(directory, mode)
                continue
            decision, why = store.write(step), model.write(step)
            expected.append((step.key, step.hold, step.token, step.value, not why, why))
            assert decision.why == why
            assert decision.seq == len(expected)
            for key in KEYS:
                slot, of_key = store.read(key), model.of(key)
                assert slot.version == len(of_key)
                assert slot.highest == model.highest(key)
                assert slot.value == (of_key[-1].value if of_key else None)
        store.commit()
        found = list(records(directory))
    finally:
        store.close()
        shutil.rmtree(directory)
    assert [(r.key, r.hold, r.token, r.value, r.accepted, r.why) for r in found] == expected
    assert [r.seq for r in found] == list(range(1, len(found) + 1))
    assert [r.time for r in found] == sorted(r.time for r in found)


def test_the_export_subtracts_the_start_of_the_run(tmp_path: Path) -> None:
    store = Store(tmp_path, "unfenced")
    decision = store.write(Write("k"))
    store.close()
    (record,) = records(tmp_path, start_ns=decision.time - 5)
    assert record.time == 5


def test_an_empty_directory_has_no_record(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="no resource has run"):
        list(records(tmp_path))


def test_a_directory_belongs_to_one_mode_and_one_server(tmp_path: Path) -> None:
    store = Store(tmp_path, "fenced")
    with pytest.raises(UserError, match="another resource runs"):
        Store(tmp_path, "fenced")
    store.close()
    with pytest.raises(UserError, match="were made in mode 'fenced'"):
        Store(tmp_path, "cas")
    Store(tmp_path, "fenced").close()


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="must be one of unfenced, fenced, cas"):
        Store(tmp_path, "strict")
