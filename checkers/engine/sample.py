"""Small random histories of any model, right ones and wrong ones, to compare checkers on.

    ops = random_history(Mutex(), random.Random(7))       # 2-9 operations of up to 4 processes
    model = random_model("lease", random.Random(7))       # with options drawn too

A history is made by a service that really takes its operations at random moments in their
intervals, so it is linearizable as drawn; answers get lost (``info``), refusals observe the state
or say nothing, times are few, so that ties are common.  Half of the histories are then broken by up
to three random changes: another answer, owner, value or token, a moved event, a lost or an invented
answer.  Whether the result is still linearizable is for the checkers to say.

Traps: a mutated history stays well-formed (time never goes back, one pending operation a process),
because malformed ones are nobody's to judge.  Models of third parties that reuse these names must
speak the same words; others need a ``calls`` function of their own.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from checkers.models import MODELS, make
from checkers.models.base import Model, determined
from harness.core.history import Interval, Op, Type

Call = tuple[str, Any]  # f, value of the invoke
TICKS_MAX = 24


class Draft(msgspec.Struct):
    """An operation on its way into a history."""

    process: int
    f: str
    value: Any
    call: int
    point: int
    end: int
    type: str = Type.OK
    answer: Any = None
    error: str | None = None
    until: int | None = None


def random_model(name: str, rng: random.Random) -> Model:
    """The model ``name`` with options drawn from ``rng``."""
    options: dict[str, dict[str, Any]] = {
        "reentrant": {"limit": rng.choice((None, 2))},
        "semaphore": {"k": rng.randint(1, 3)},
        "cas": {"initial": rng.choice((None, 0)), "failed_cas_observes": rng.random() < 0.3},
        "register": {"initial": 0},
        "lease": {"ttl_ns": rng.randint(2, 12), "property": rng.choice(("safe", "exact"))},
    }
    return make(name, **options.get(name, {}))


def random_history(model: Model, rng: random.Random, *, ops_max: int = 8) -> list[Op]:
    """Events of a small history for ``model``, in order of time; valid or mutated."""
    drafts = _draft(model, rng, rng.randint(2, ops_max))
    _answer(drafts, determined(model), rng)
    if rng.random() < 0.5:
        for _ in range(rng.randint(1, 3)):
            _mutate(rng.choice(drafts), drafts, rng)
    return _events(drafts, rng)


def _draft(model: Model, rng: random.Random, count: int) -> list[Draft]:
    """Operations of a few processes, each busy with one at a time; some touch at a tick."""
    processes = rng.randint(1, 4)
    free_at = [rng.randint(0, 3) for _ in range(processes)]
    styled = rng.choice(("hold", "hold", "owner", "process", "mixed"))
    calls = CALLS[model.name](rng, styled)
    drafts = []
    for _ in range(count):
        process = min(range(processes), key=lambda p: free_at[p] + rng.random())
        call = free_at[process] + rng.choice((0, 0, 1, 1, 2))
        end = call + rng.choice((0, 1, 1, 2, 3, 5, 8))
        free_at[process] = end
        f, value = calls(process)
        drafts.append(Draft(process, f, value, call, rng.randint(call, end), end))
    return drafts


def _answer(drafts: list[Draft], model: Model, rng: random.Random) -> None:
    """Lets the operations take effect at their points, in order, and writes down the answers."""
    state = model.init
    token = rng.choice((0, 0, (1 << 53) - 1))
    for draft in sorted(drafts, key=lambda d: (d.point, d.call, d.process)):
        lost = rng.random() < rng.choice((0.0, 0.25, 0.5))
        if rng.random() < 0.06 or (lost and rng.random() < 0.4):
            draft.type = Type.INFO if lost else Type.FAIL
            continue  # without effect
        token += rng.randint(1, 2)
        after = _take(draft, state, model, token, rng)
        if after is not None:
            state = after
            draft.type = Type.INFO if lost else Type.OK
        else:
            draft.type = Type.FAIL
            draft.error = rng.choice((*_words(draft.f), None))
        if draft.type == Type.INFO and rng.random() < 0.3:
            draft.until = draft.point + rng.randint(0, 4)


def _words(f: str) -> tuple[str, ...]:
    """Which observation a refusal of ``f`` would be, given more than once to make it likely."""
    word = {"acquire": "busy", "cas": "mismatch", "write": "stale"}.get(f, "not-held")
    return (word, word, word)


def _take(draft: Draft, state: Any, model: Model, token: int, rng: random.Random) -> Any:
    """The state after the operation, with the answer it gets; None if it is refused."""
    tries: list[Any] = [None]
    if draft.f == "acquire" and model.name == "fenced":
        tries = [token]
    elif draft.f in ("read", "get"):
        known = {"read": (None, 0, 1, 2, 3), "get": _texts(drawn=state)}[draft.f]
        tries = list(known)
        rng.shuffle(tries)
    for answer in tries:
        value = dict(draft.value, token=answer) if model.name == "fenced" else answer
        shown = draft.value if answer is None and draft.f not in ("read", "get") else value
        op = Interval(
            Op(0, draft.call, draft.process, Type.INVOKE, draft.f, "k", draft.value),
            Op(1, draft.end, draft.process, Type.OK, draft.f, "k", shown),
        )
        prepared = model.prepare(op)
        after = None if prepared is None else model.step(state, prepared)
        if after is not None:
            draft.answer = shown
            return after
    return None


def _texts(drawn: Any) -> tuple[str, ...]:
    return (drawn,) if isinstance(drawn, str) else ("",)


def _mutate(draft: Draft, drafts: list[Draft], rng: random.Random) -> None:
    """One random change that leaves the history well-formed."""
    kind = rng.randint(0, 5)
    other = rng.choice(drafts)
    if kind == 0:
        draft.type = rng.choice((Type.OK, Type.INFO, Type.FAIL))
        draft.error = rng.choice((*_words(draft.f), None)) if draft.type == Type.FAIL else None
    elif kind == 1 and other.f == draft.f:
        draft.value, other.value = other.value, draft.value
    elif kind == 2 and other.f == draft.f:
        draft.answer, other.answer = other.answer, draft.answer
    elif kind == 3:
        draft.end = rng.randint(draft.call, draft.end)
    elif kind == 4:
        draft.call = rng.randint(draft.call, draft.end)
    elif draft.type == Type.FAIL:
        draft.type, draft.error = Type.OK, None
    else:
        draft.answer = rng.choice([one.answer for one in drafts if one.f == draft.f])


def _events(drafts: list[Draft], rng: random.Random) -> list[Op]:
    """The drafts as events.  At a tick the lines of one process keep their order, others mix."""
    rows: list[tuple[float, int, int, Draft, bool]] = []
    for place, draft in enumerate(drafts):
        rows.append((draft.call, place, 0, draft, False))
        rows.append((draft.end, place, 1, draft, True))
    jitter = {draft.process: rng.random() for draft in drafts}
    rows.sort(key=lambda row: (row[0], jitter[row[3].process], row[1], row[2]))
    renamed: dict[int, int] = {}  # a process gets a new number after an unknown outcome, mostly
    ops: list[Op] = []
    for time, _, _, draft, ends in rows:
        process = renamed.get(draft.process, draft.process)
        op = Op(len(ops), int(time), process, Type.INVOKE, draft.f, "k", draft.value)
        if ends:
            op.type, op.error = draft.type, draft.error
            op.value = draft.answer if draft.type == Type.OK else draft.value
            if draft.type == Type.INFO and rng.random() < 0.8:
                renamed[draft.process] = process + 10
            if draft.type == Type.INFO and draft.until is not None:
                op.extra = {"until_ns": max(draft.until, draft.call)}
            elif draft.type == Type.INFO and rng.random() < 0.2:
                continue  # no completion at all
        ops.append(op)
    return ops


def _lock_calls(rng: random.Random, styled: str) -> Callable[[int], Call]:
    """Acquire, renew and release, mostly in that order, with the ids that ``styled`` says."""
    holds: dict[int, int] = {}
    last: dict[int, str] = {}
    names = rng.sample(range(100), 8)

    def call(process: int) -> Call:
        usual = {"acquire": "release", "renew": "release"}.get(last.get(process, ""), "acquire")
        odd = rng.choice(("acquire", "release", "renew", "renew"))
        f = usual if rng.random() < 0.7 else odd
        last[process] = f
        if f == "acquire":
            holds[process] = holds.get(process, -1) + 1
        value: dict[str, Any] = {}
        if styled == "hold" or (styled == "mixed" and rng.random() < 0.5):
            who = process if rng.random() < 0.95 else rng.randint(0, 3)
            value["hold"] = f"{names[who % 8]}-{holds.get(who, 0)}"
        if styled == "owner" or (styled == "mixed" and rng.random() < 0.5):
            value["owner"] = f"w{process if rng.random() < 0.9 else rng.randint(0, 3)}"
        return f, value

    return call


def _extra(name: str) -> Callable[[random.Random, str], Callable[[int], Call]]:
    """Lock calls with the one more field that the model ``name`` looks at."""

    def make_calls(rng: random.Random, styled: str) -> Callable[[int], Call]:
        plain = _lock_calls(rng, styled)
        permits: dict[int, int] = {}
        modes: dict[int, str] = {}

        def call(process: int) -> Call:
            f, value = plain(process)
            if name == "semaphore" and rng.random() < 0.6:
                if f == "acquire" or rng.random() < 0.2:
                    permits[process] = rng.randint(1, 2)
                value["permits"] = permits.get(process, 1)
            elif name == "rwlock":
                if f == "acquire":
                    modes[process] = rng.choice(("read", "write", "shared", "exclusive"))
                if rng.random() < 0.08:
                    f = rng.choice(("upgrade", "downgrade"))
                if f == "acquire" or rng.random() < 0.5:
                    value["mode"] = modes.get(process, "read")
            elif name == "lease" and rng.random() < 0.05:
                f = "expire"
            elif name == "lease" and f != "release" and rng.random() < 0.2:
                value["ttl_ns"] = rng.randint(1, 9)
            return f, value

        return call

    return make_calls


def _register_calls(rng: random.Random, _: str) -> Callable[[int], Call]:
    def call(_: int) -> Call:
        f = rng.choice(("read", "read", "write", "cas", "cas"))
        if f == "cas":
            return f, [rng.choice((0, 0, 1, 2)), rng.randint(1, 3)]
        return f, None if f == "read" else rng.randint(0, 3)

    return call


def _kv_calls(rng: random.Random, _: str) -> Callable[[int], Call]:
    def call(process: int) -> Call:
        f = rng.choice(("get", "get", "append", "append", "put"))
        return f, None if f == "get" else rng.choice(("a", "b", f"{process}"))

    return call


def _store_calls(rng: random.Random, _: str) -> Callable[[int], Call]:
    base = rng.choice((0, (1 << 53) - 2))

    def call(_: int) -> Call:
        return "write", {"token": base + rng.randint(1, 5)}

    return call


CALLS: dict[str, Callable[[random.Random, str], Callable[[int], Call]]] = {
    "mutex": _lock_calls,
    "jepsen-mutex": _lock_calls,
    "reentrant": _lock_calls,
    "fenced": _lock_calls,
    "semaphore": _extra("semaphore"),
    "rwlock": _extra("rwlock"),
    "lease": _extra("lease"),
    "cas": _register_calls,
    "kv": _kv_calls,
    "store": _store_calls,
}

SAMPLED = sorted(set(MODELS.names()) & set(CALLS))
