"""The protected resource in virtual time: same rules and same record as the real one.

    resource = SimResource("fenced")
    resource.ask({"do": "write", "key": "r0", "hold": "0-1", "token": 3, "value": 7}, now_ns=5)
    # {"ok": True, "version": 1, "seq": 1}

Modes: ``unfenced`` accepts every write; ``fenced`` refuses a token below the greatest accepted
one of that key, and a write without a token; ``cas`` accepts a write only if it names the present
version (``expect``).  Each write is recorded with what was decided, in order of arrival.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.core.errors import UserError
from harness.core.protocols import ResourceRecord

MODES = ("unfenced", "fenced", "cas")


class SimResource:
    """Values, versions and greatest tokens by key, and ``records`` of every write."""

    def __init__(self, mode: str) -> None:
        if mode not in MODES:
            raise UserError(f"resource.mode is {mode!r}; it must be one of {', '.join(MODES)}")
        self.mode = mode
        self.records: list[ResourceRecord] = []
        self._values: dict[str, tuple[int, Any]] = {}
        self._tokens: dict[str, int] = {}

    def ask(self, message: Mapping[str, Any], *, now_ns: int) -> dict[str, Any]:
        """Answers ``read`` and ``write`` as the real resource does."""
        key = message["key"]
        version, value = self._values.get(key, (0, None))
        if message["do"] == "read":
            return {"ok": True, "value": value, "version": version}
        why = self._refusal(message, version)
        record = ResourceRecord(
            seq=len(self.records) + 1,
            time=now_ns,
            key=key,
            hold=message.get("hold"),
            token=message.get("token"),
            value=message.get("value"),
            accepted=not why,
            why=why,
        )
        self.records.append(record)
        if why:
            return {"ok": False, "why": why, "version": version, "seq": record.seq}
        self._values[key] = (version + 1, message.get("value"))
        if message.get("token") is not None:
            self._tokens[key] = max(message["token"], self._tokens.get(key, message["token"]))
        return {"ok": True, "version": version + 1, "seq": record.seq}

    def _refusal(self, message: Mapping[str, Any], version: int) -> str:
        token, expect = message.get("token"), message.get("expect")
        if self.mode == "fenced":
            if token is None:
                return "no-token"
            if token < self._tokens.get(message["key"], token):
                return "stale"
        if self.mode == "cas" and expect != version:
            return "mismatch"
        return ""
