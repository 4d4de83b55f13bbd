"""What a model is: a small class that says which operation is legal in which state.

A model is all that the general engine and the oracle need to judge a history:

    class Counter(Model):
        name, init = "counter", 0
        def step(self, state, op):          # op is an Interval here; None means "not legal"
            return state + 1 if op.invoke.f == "add" else None

Two optional powers.  ``prepare`` turns an Interval into whatever ``step`` wants to see (done once
per operation, so that ``step`` stays fast), or into None for "says nothing about this object":
by default that is every ``fail``.  ``partition`` names the independent object an operation is
about (by default its key).  A non-deterministic model sets ``deterministic = False`` and lets
``step`` return an iterable of states; ``PowerSet`` makes a deterministic one out of it.

Traps.  States and prepared operations must be hashable and must not be None.  JSON's ``true`` is
not ``1``: ``freeze`` keeps them apart, Python's ``==`` would not.  An operation of unknown outcome
has no result: ``step`` must not read a token or a value from it.  A model with times in its states
(the lease) names the part that may be compared in ``cost`` (see there).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from harness.core.history import OBSERVATIONS, Interval, Type

ACQUIRE, RELEASE, RENEW = "acquire", "release", "renew"

# One meaning, several spellings: those of Jepsen suites and of the libraries we drive.
LOCK_F: dict[str, str] = {
    "acquire": ACQUIRE,
    "lock": ACQUIRE,
    "try-acquire": ACQUIRE,
    "release": RELEASE,
    "unlock": RELEASE,
    "renew": RENEW,
    "extend": RENEW,
    "refresh": RENEW,
}

BUSY, NOT_HELD, MISMATCH, STALE = "busy", "not-held", "mismatch", "stale"
RESETS: Any = ("resets",)  # see Model.wants


class Model:
    """Base class of models; ``init`` and ``step`` are all a subclass must give."""

    name: str = "model"
    init: Any = 0
    deterministic: bool = True
    costed: bool = False
    """True if ``cost`` is to be asked; the states of most models are just equal or different."""

    def prepare(self, op: Interval) -> Any:
        """The operation as ``step`` wants it, or None if it says nothing about the object."""
        return None if op.outcome == Type.FAIL else op

    def step(self, state: Any, op: Any) -> Any:
        """The state after ``op``, or None if it is not legal in ``state``.

        Non-deterministic models return an iterable of states, empty if not legal.
        """
        raise NotImplementedError

    def partition(self, op: Interval) -> Hashable:
        """The independent object that ``op`` is about."""
        return op.invoke.key

    def watches(self, op: Any) -> bool:
        """Whether a prepared operation never changes any state (it may still be illegal in some).

        False is always right; True spares the search a choice.
        """
        return False

    foresees: bool = False
    """True if the two methods below mean something (see ``checkers.engine.foresight``)."""

    def wants(self, op: Any) -> Any:
        """What an operation that watches needs the state to be; RESETS if it can make any state
        possible again; None for all others."""
        return RESETS

    def leads(self, state: Any, wanted: Any) -> bool:
        """Whether ``state`` may become ``wanted`` without an operation that resets."""
        return True

    def cost(self, state: Any) -> tuple[Hashable, tuple[float, ...]]:
        """Splits a state into (what must be equal, numbers of which less is at least as good)."""
        return state, ()


class PowerSet(Model):
    """A non-deterministic model made deterministic: its state is the set of possible states.

    Nothing only watches such a state: what is illegal in one of the states rules that one out.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.name = model.name
        self.init = frozenset((model.init,))

    def prepare(self, op: Interval) -> Any:
        return self.model.prepare(op)

    def partition(self, op: Interval) -> Hashable:
        return self.model.partition(op)

    def step(self, state: Any, op: Any) -> Any:
        after: set[Any] = set()
        for one in state:
            after.update(self.model.step(one, op))
        return frozenset(after) or None


def determined(model: Model) -> Model:
    """The model itself, or its power set if it is non-deterministic."""
    return model if model.deterministic else PowerSet(model)


def observed(op: Interval) -> str | None:
    """The word of OBSERVATIONS that a failed operation answered, or None."""
    done = op.complete
    if done is None or done.type != Type.FAIL or done.error not in OBSERVATIONS:
        return None
    return done.error


def owner_of(op: Interval) -> Hashable:
    """Who acts: ``value.owner``, else the process."""
    owner = op.field("owner")
    return op.invoke.process if owner is None else freeze(owner)


def hold_of(op: Interval) -> Hashable:
    """The hold id (fresh per acquire attempt), or None where the history has none."""
    return freeze(op.field("hold"))


def until_ns(op: Interval) -> int | None:
    """Time after which an operation of unknown outcome can no longer take effect, if known.

    Read from ``until_ns`` in the value object, else in ``extra`` of the completion or invoke.
    """
    invoke, done = op.invoke, op.complete
    plain = not invoke.extra and type(invoke.value) is not dict
    if plain and (done is None or not (done.extra or type(done.value) is dict)):
        return None  # the usual case, fast
    found = None
    for event in (done, invoke):
        if event is None or found is not None:
            continue
        if isinstance(event.value, dict):
            found = event.value.get("until_ns")
        if found is None and event.extra:
            found = event.extra.get("until_ns")
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def integer(value: Any) -> int | None:
    """An integer of any size, also written as a decimal string; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.isascii() and value.removeprefix("-").isdigit():
        return int(value)
    return None


def freeze(value: Any) -> Hashable:
    """A JSON value as something hashable, equal exactly for equal JSON values."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, dict):
        return ("dict", frozenset((name, freeze(item)) for name, item in value.items()))
    if isinstance(value, Iterable):
        return ("list", tuple(freeze(item) for item in value))
    return repr(value)
