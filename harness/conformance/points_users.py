"""The points of an examination: several users of one client, if hello says that it serves them."""

from __future__ import annotations

from typing import Any

from harness.conformance.bench import Bench, Skipped, must
from harness.conformance.points import point
from harness.conformance.talk import Talk, Wrong
from harness.core.history import OBSERVATIONS
from harness.core.messages import Reply
from harness.stage import nodes_of

LONG_MS = 60_000


def _open(bench: Bench, worker: Talk, user: int, sharing: dict[str, Any]) -> Reply:
    nodes = [] if bench.cluster is None else nodes_of(bench.cluster.endpoints(0), 0)
    options = {"nodes": nodes, "options": bench.options, "resource": None, "sharing": sharing}
    return worker.ask("open", options=options, user=user)


def _kinds(bench: Bench) -> list[str]:
    kinds = bench.one.hello.get("users") or []
    if not kinds:
        raise Skipped("hello names no users")
    return [str(kind) for kind in kinds]


@point("users", "users of one client are served side by side, each with its own holds", ready=False)
def users(bench: Bench) -> None:
    for kind in _kinds(bench):
        bench.ready(fresh=True, opened=False)
        worker, key = bench.one, bench.key()
        for user in (0, 1):
            must(_open(bench, worker, user, {"users": kind, "together": 2, "share": "connection"}),
                 "ok")  # fmt: skip
        took = bench.hold()
        fields: dict[str, Any] = {"key": key, "hold": took, "ttl_ms": LONG_MS}
        must(worker.ask("acquire", timeout_ms=0, user=0, **fields), "ok")
        reply = worker.ask("release", key=key, hold=took, user=1)
        must(reply, "fail")
        if reply.error in OBSERVATIONS:
            raise Wrong(f"user 1 released a hold of user 0 and was told {reply.error!r}")
        must(worker.ask("release", key=key, hold=took, user=0), "ok")
    bench.ready(fresh=True, opened=False)


@point("users.refused", "users that it does not name are a fail of open", ready=False)
def refused(bench: Bench) -> None:
    _kinds(bench)
    bench.ready(fresh=True, opened=False)
    must(_open(bench, bench.one, 0, {"users": "crowds", "together": 2, "share": "connection"}),
         "fail")  # fmt: skip
    bench.ready(fresh=True, opened=False)
