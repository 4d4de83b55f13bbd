"""A scenario per rule: it brings out the failure, live, and claims that the lock holds.

    scenario("A-ID-1", library="redis-py")      # TOML; run it with: lockhavoc run FILE

Run on the library as it is, it shows whether the library itself has the fault; put under test as a
worker of your own (docs/reference/worker-protocol.md), whether your wrapper has.  A run that is as
claimed can be attached to a case: ``lockhavoc audit attach CASE RUN --for RULE``.

Traps: a lease of half a second keeps a run short; what fails with it fails with minutes, too, only
more seldom.
"""

from __future__ import annotations

import json
from typing import Any

from checkers.audit.kinds import KINDS
from checkers.audit.rules.registry import RULES

Fault = dict[str, Any]
_PAUSE: Fault = {
    "kind": "worker-pause", "target": "holder", "when": "held", "start_ms": [500, 700],
    "every_ms": [200, 400], "count": 5, "duration_ms": [560, 640],
}  # fmt: skip
_KILL: Fault = {
    "kind": "worker-kill", "target": "holder", "when": "held", "start_ms": [500, 800],
    "every_ms": [1000, 1500], "count": 3, "duration_ms": [100, 300],
}  # fmt: skip
_JAM: Fault = {
    "kind": "jam", "target": "holder", "when": "held", "start_ms": [800, 1200],
    "every_ms": [1500, 2000], "count": 2, "duration_ms": [800, 1200],
}  # fmt: skip
_CUT: Fault = {
    "kind": "cut-reply", "target": "waiter", "when": "between-grant-and-reply",
    "start_ms": [500, 900], "duration_ms": [200, 400],
}  # fmt: skip
_SLOW: Fault = {
    "kind": "latency", "target": "all-nodes", "start_ms": 300, "duration_ms": 4500,
    "params": {"latency_ms": 300},
}  # fmt: skip
_RESTART: Fault = {
    "kind": "node-restart-empty", "target": "primary", "start_ms": [800, 1200],
    "duration_ms": [200, 400],
}  # fmt: skip
_FLUSH: Fault = {"kind": "flush", "target": "primary", "start_ms": [800, 1200], "duration_ms": 100}
_CLOCK: Fault = {
    "kind": "clock-jump", "target": "primary", "start_ms": [800, 1200], "duration_ms": 1500,
    "params": {"direction": "forward", "offset_ms": 5000},
}  # fmt: skip
_BY_KIND: dict[str, list[Fault]] = {
    "K01": [_PAUSE], "K02": [_PAUSE], "K03": [_PAUSE], "K04": [_JAM], "K05": [_KILL],
    "K06": [_PAUSE], "K07": [_PAUSE], "K08": [_JAM], "K09": [_PAUSE], "K10": [_CLOCK],
    "K11": [_PAUSE], "K12": [_RESTART], "K13": [_FLUSH], "K14": [_KILL], "K15": [_PAUSE],
    "K16": [_CUT, _JAM], "K17": [_CUT], "K18": [_KILL], "K19": [_PAUSE, _KILL], "K20": [_JAM],
    "K21": [], "K22": [_JAM], "K23": [_JAM], "K24": [], "K25": [_PAUSE],
}  # fmt: skip
_BY_RULE: dict[str, list[Fault]] = {
    # A client that dies between the two commands: answers are slow, then a holder dies.
    "A-LEASE-2": [_SLOW, {**_KILL, "target": "all-workers", "start_ms": [1200, 1500]}],
}
LIBRARY = {
    "": "redis-py", "redis-py": "redis-py", "redis commands": "redis-py", "kazoo": "kazoo",
    "python-redis-lock": "python-redis-lock", "redlock-py": "redlock-py", "etcd3": "python-etcd3",
    "pottery": "pottery-redlock", "advisory lock": "psycopg-advisory", "sherlock": "sherlock",
    "django-pglock": "django-pglock",
}  # fmt: skip


def scenario(rule: str, *, library: str, backend: str = "", time_ms: int = 6000) -> str:
    """The scenario of a rule as TOML, for a library of the harness or one of your own."""
    found = RULES.load(rule)
    kind = KINDS[found.kind]
    fenced = rule.startswith("A-FENCE-")
    workload: dict[str, Any] = {
        "workers": 4, "ttl_ms": 500, "hold_ms": [20, 60], "idle_ms": [0, 5],
        "acquire_timeout_ms": 3000,
    }  # fmt: skip
    if rule in ("A-LEASE-5", "A-LEASE-6", "A-LEASE-7"):
        workload |= {"hold_ms": [150, 250], "renew_every_ms": 50}
    why = f"{kind.must}; a paused client may believe in a lease that is over, and that does no harm"
    lines = [
        f"name = {_toml(f'audit-{rule.lower()}-{library}')}",
        f"description = {_toml(f'{rule}: {found.title}')}",
        "",
        "[claim]",
        'verdict = "holds"',
        'tolerates = ["exclusion", "belief"]',
        f"why = {_toml(why)}",
        "",
        *(["[backend]", f"name = {_toml(backend)}", ""] if backend else []),
        "[client]",
        f"library = {_toml(library)}",
        "",
        "[workload]",
        *(f"{name} = {_toml(value)}" for name, value in workload.items()),
        "",
        "[resource]",
        f"mode = {_toml('fenced' if fenced else 'none')}",
    ]
    for fault in _BY_RULE.get(rule, _BY_KIND[found.kind]):
        lines += ["", "[[faults]]", *(f"{name} = {_toml(value)}" for name, value in fault.items())]
    lines += ["", "[run]", f"time_ms = {time_ms}", "recovery_ms = 3000", ""]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
