"""The protected resource in virtual time: the rules of the real one, without its disk.

    resource = SimResource("fenced")
    resource.ask({"do": "write", "key": "r0", "hold": "0-1", "token": 3, "value": 7}, now_ns=5)
    # {"ok": True, "version": 1, "seq": 1}

The decision is ``clients.resource.store.judge``, the very function of the real resource; each write
is recorded with what was decided, in order of arrival.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clients.resource.store import MODES, Slot, Write, judge
from harness.core.errors import UserError
from harness.core.protocols import ResourceRecord


class SimResource:
    """Values, versions and greatest tokens by key, and ``records`` of every write."""

    def __init__(self, mode: str) -> None:
        if mode not in MODES:
            raise UserError(f"resource.mode is {mode!r}; it must be one of {', '.join(MODES)}")
        self.mode = mode
        self.records: list[ResourceRecord] = []
        self._slots: dict[str, Slot] = {}

    def ask(self, message: Mapping[str, Any], *, now_ns: int) -> dict[str, Any]:
        """Answers ``read`` and ``write`` as the real resource does."""
        key = message["key"]
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = Slot()
        if message["do"] == "read":
            return {"ok": True, "value": slot.value, "version": slot.version}
        hold, token, value = message["hold"], message["token"], message["value"]
        why = judge(self.mode, slot, Write(key, hold, token, value, message["expect"]))
        seq = len(self.records) + 1
        self.records.append(
            ResourceRecord(
                seq=seq,
                time=now_ns,
                key=key,
                hold=hold,
                token=token,
                value=value,
                accepted=not why,
                why=why,
            )
        )
        if why:
            return {"ok": False, "why": why, "version": slot.version, "seq": seq}
        slot.value = value
        slot.version += 1
        if token is not None:
            slot.highest = token if slot.highest is None else max(token, slot.highest)
        return {"ok": True, "version": slot.version, "seq": seq}
