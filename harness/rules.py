"""Rules of a scenario that one field alone cannot tell: names in registries, sums of times.

They run on the raw data, also when other parts of the file are wrong, so that a file with five
mistakes lists all five.  A value of the wrong type is silently passed over here: the typed model
has complained about it already.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from clients.choice import LibraryChoice, problems
from clients.libraries import Library
from compose.backends.spec import BackendSpec
from harness.core.registry import Registry
from harness.registries import BACKENDS, CHECKERS, FAULTS, LIBRARIES, backend_names
from harness.workloads.registry import WORKLOADS

AIMED = {"held", "near-expiry", "renewing"}
AIM = {"kind": "", "target": "holder", "when": "", "near_ms": 100, "params": {}}  # defaults


def cross_problems(data: Mapping[str, Any]) -> list[str]:
    """All problems found, each one line that starts with the path of the field."""
    return [
        *_names(data),
        *_claim(_table(data, "claim")),
        *_workload(_table(data, "workload")),
        *_client(data),
        *_run(data),
        *_faults(data),
        *_aims(data),
    ]


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def _fault_tables(data: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every fault that may happen, also those of a mix."""
    for path, fault in _tables(data, "faults"):
        if fault.get("mix"):
            yield from ((f"{path}.{inner}", one) for inner, one in _tables(fault, "mix"))
        else:
            yield path, fault


def _tables(data: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    listed = data.get(name)
    for index, table in enumerate(listed if isinstance(listed, list) else []):
        if isinstance(table, Mapping):
            yield f"{name}[{index}]", table


def _unknown(path: str, kind: str, name: object, known: Iterable[str]) -> Iterator[str]:
    names = sorted(known)
    if isinstance(name, str) and name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
        yield f"{path}: unknown {kind} {name!r}; {hint}"


def _names(data: Mapping[str, Any]) -> Iterator[str]:
    backend, client = _table(data, "backend"), _table(data, "client")
    yield from _unknown("backend.name", "backend", backend.get("name"), backend_names())
    if not client.get("adapter"):  # else `library` is only a name in reports
        yield from _unknown("client.library", "library", client.get("library"), LIBRARIES)
    for path, fault in _fault_tables(data):
        yield from _unknown(f"{path}.kind", "fault", fault.get("kind") or None, FAULTS)
    for field in ("by", "tolerates"):
        listed = _table(data, "claim").get(field)
        for index, name in enumerate(listed if isinstance(listed, list) else []):
            yield from _unknown(f"claim.{field}[{index}]", "checker", name, CHECKERS)


def _claim(claim: Mapping[str, Any]) -> Iterator[str]:
    if claim.get("verdict") == "violation" and not claim.get("why"):
        yield "claim.why: missing; a claim of a violation says why one should expect it"
    if claim.get("verdict") == "holds" and claim.get("by"):
        yield "claim.by: a claim that the lock holds names no checker; leave `by` out"
    if claim.get("tolerates") and not claim.get("why"):
        yield "claim.why: missing; a claim that tolerates a violation says why"


def _workload(workload: Mapping[str, Any]) -> Iterator[str]:
    kind, params = workload.get("kind", "mutex"), workload.get("params", {})
    yield from _unknown("workload.kind", "workload", kind, WORKLOADS)
    if isinstance(kind, str) and kind in WORKLOADS and isinstance(params, Mapping):
        for problem in WORKLOADS.load(kind)().problems(params):
            yield f"workload.params.{problem}"
    ttl_ms, renew_ms = workload.get("ttl_ms", 1000), workload.get("renew_every_ms")
    if isinstance(ttl_ms, int) and isinstance(renew_ms, int) and renew_ms >= ttl_ms:
        yield (
            f"workload.renew_every_ms: {renew_ms} is not below workload.ttl_ms = {ttl_ms}; "
            "a renewal must come before the lease ends (a third of it is usual)"
        )
    workers, keys = workload.get("workers", 4), workload.get("keys", 1)
    yield from _misfits(kind, params, workers, keys)
    if isinstance(workers, int) and isinstance(keys, int) and 1 <= workers < keys:
        yield (
            f"workload.keys: {keys} locks for {workers} workers: nobody would ever contend; "
            f"use at most {workers}"
        )


def _misfits(kind: object, params: object, workers: object, keys: object) -> Iterator[str]:
    """What a workload's own parameters and the number of workers and locks make of each other."""
    if not (isinstance(kind, str) and kind in WORKLOADS and isinstance(params, Mapping)):
        return
    made = WORKLOADS.load(kind)()
    if isinstance(workers, int) and isinstance(keys, int) and not made.problems(params):
        for problem in made.misfits(made.settle(params), workers=workers, keys=keys):
            yield f"workload.params.{problem}"


def _run(data: Mapping[str, Any]) -> Iterator[str]:
    grant_ms = _table(data, "run").get("grant_ms")
    ttl_ms = _table(data, "workload").get("ttl_ms", 1000)
    if isinstance(grant_ms, int) and isinstance(ttl_ms, int) and grant_ms <= ttl_ms:
        yield (
            f"run.grant_ms: {grant_ms} is not above workload.ttl_ms = {ttl_ms}; a lock whose grant "
            "got no answer may rightly stay until its lease is over"
        )


def _client(data: Mapping[str, Any]) -> Iterator[str]:
    client = _table(data, "client")
    yield from _choice(client)
    name = client.get("library")
    backend = _table(data, "backend").get("name", "redis-single")
    if client.get("adapter") or not isinstance(name, str) or name not in LIBRARIES:
        return
    if not isinstance(backend, str):
        return
    library = LIBRARIES.load(name)
    if backend in backend_names() and backend not in library.backends:
        yield (
            f"client.library: {name!r} does not run on backend {backend!r} "
            f"(it runs on: {', '.join(library.backends)})"
        )
    yield from library_problems(library, data)


def _choice(client: Mapping[str, Any]) -> Iterator[str]:
    paths = {name: client.get(name) for name in ("python", "wheel", "adapter")}
    listed = client.get("with")
    texts = listed if isinstance(listed, list) else []
    if all(isinstance(text, str) for text in texts) and all(
        path is None or isinstance(path, str) for path in paths.values()
    ):
        yield from problems(LibraryChoice(with_=tuple(texts), **paths))


def library_problems(library: Library, data: Mapping[str, Any]) -> Iterator[str]:
    """What a scenario asks of a library that it cannot give."""
    name = library.name
    for path, fault in _fault_tables(data):
        if fault.get("when") == "near-expiry" and library.lease != "ttl":
            yield (
                f"{path}.when: 'near-expiry' never comes: a lock of {name!r} has no time to live, "
                f"it ends with its {library.lease}; use 'held'"
            )
    kind = _table(data, "workload").get("kind", "mutex")
    needs = WORKLOADS.load(kind).needs if isinstance(kind, str) and kind in WORKLOADS else ""
    if needs and needs not in library.powers:
        having = [one for one in LIBRARIES if needs in LIBRARIES.load(one).powers]
        yield (
            f"workload.kind: {kind!r} needs a library with the power {needs!r} and {name!r} has it "
            f"not; use one of: {', '.join(having)}"
        )
    mode = _table(data, "resource").get("mode")
    if mode in ("fenced", "cas") and needs == "permits":
        yield f"resource.mode: {mode!r} refuses nothing: {kind!r} writes nothing; leave it out"
    elif mode == "fenced" and not library.fencing:
        yield (
            f"resource.mode: 'fenced' needs fencing tokens and {name!r} gives none; "
            "use another mode or a library with tokens"
        )


def _faults(data: Mapping[str, Any]) -> Iterator[str]:
    time_ms = _table(data, "run").get("time_ms", 10_000)
    for path, fault in _tables(data, "faults"):
        if fault.get("mix"):
            # A stored plan spells out defaults; what differs from them was written by somebody.
            own = [name for name, value in AIM.items() if fault.get(name, value) != value]
            for name in own:
                yield f"{path}.{name}: stands beside a mix; write it into each part of the mix"
        start = fault.get("start_ms", 1000)
        first_ms = start[0] if isinstance(start, list) and start else start
        if isinstance(first_ms, int) and isinstance(time_ms, int) and first_ms >= time_ms:
            yield (
                f"{path}.start_ms: {first_ms} is not before the end of the main phase "
                f"(run.time_ms = {time_ms}); the fault would never happen"
            )
    for path, fault in _fault_tables(data):
        kind = fault.get("kind")
        if not kind:
            yield f"{path}.kind: missing; name a fault (lockhavoc faults lists them) or a mix"
        elif isinstance(kind, str) and kind in FAULTS:
            yield from _fault_fits(path, fault, FAULTS, kind)


def _aims(data: Mapping[str, Any]) -> Iterator[str]:
    """Aims at nodes that the backend does not have."""
    name = _table(data, "backend").get("name", "redis-single")
    if not isinstance(name, str) or name not in BACKENDS:
        return
    spec = BACKENDS.load(name)
    for path, fault in _fault_tables(data):
        target = fault.get("target", "holder")
        for aim in re.split(r"[/+]", target) if isinstance(target, str) else ():
            yield from _aim(f"{path}.target", aim, target, spec)


def _aim(path: str, aim: str, target: str, spec: BackendSpec) -> Iterator[str]:
    if aim == "primary" and spec.no_primary:
        yield (
            f"{path}: {target!r} names no node of backend {spec.name!r}: {spec.no_primary}; "
            "use any-node, minority, majority, all-nodes or node:NAME"
        )
    elif aim == "minority" and len(spec.voters) < 3:
        yield (
            f"{path}: {target!r} is nobody: a minority needs 3 nodes that vote and backend "
            f"{spec.name!r} has {len(spec.voters)}"
        )
    elif aim.startswith("node:") and aim != "node:":
        known = [f"node:{node}" for node in spec.node_names]
        yield from _unknown(path, "node", aim, known)


def _fault_fits(path: str, fault: Mapping[str, Any], faults: Registry, kind: str) -> Iterator[str]:
    from nemesis.params import parameter_problems
    from nemesis.targets import target_problem

    fault_class = faults.load(kind)
    target = fault.get("target", "holder")
    if isinstance(target, str):
        problem = target_problem(fault_class.acts_on, target)
        if problem:
            yield f"{path}.target: {problem}"
    params = fault.get("params", {})
    if isinstance(params, Mapping):
        for problem in parameter_problems(fault_class, params):
            yield f"{path}.params.{problem}"
