"""Which kind of violation a minimal set of operations is, and the sentence that says so.

``tell`` looks for the patterns it knows (double grant, lost lock, token inversion, stale write ...)
and falls back to the bare truth: "no order of these operations is legal".  It never decides whether
there is a violation; the engine did.  Times are those of the history: asked = invoke, told =
completion.  Overlap is counted from the later grant's answer to the first request that could end
either hold, which is how long both certainly held.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec

from checkers.minimise import SEPARABLE, identity
from checkers.models.base import ACQUIRE, LOCK_F, RELEASE, RENEW, Model, integer, observed
from checkers.models.shared import RW_F
from checkers.picture import show, unit, who
from harness.core.history import Interval, Type
from harness.core.result import Side


class Story(msgspec.Struct):
    """ops: the proof.  scope: all operations of the same holders.  letters: by invoke index."""

    ops: list[Interval]
    scope: Sequence[Interval]
    letters: dict[int, str]
    model: Model
    kind: str = "no-legal-order"
    says: str = ""
    side: Side | None = Side.SERVICE
    overlap_ns: int | None = None

    def letter(self, op: Interval) -> str:
        return self.letters[op.invoke.index]

    def at(self, time_ns: int | None) -> str:
        in_unit = unit(self.ops)
        return "never" if time_ns is None else f"{show(time_ns, in_unit)} {in_unit}"


def tell(story: Story) -> Story:
    """Fills in kind, says, side and overlap_ns."""
    lock = story.model.name in SEPARABLE
    tellers = (_refused, _overlap, _tokens) if lock else (_store, _register)
    for teller in tellers:
        if teller(story):
            break
    else:
        _plain(story)
    ops = story.ops
    key = ops[0].invoke.key
    on = "" if key is None else f" on {key}"
    letters = ", ".join(story.letter(op) for op in ops)
    side = "" if story.side is None else f" ({story.side})"
    proof = f"{letters} alone proves it" if len(ops) == 1 else f"{letters} prove it by themselves"
    story.says = f"{story.kind}{side}{on}: {story.says} {proof}, whatever all other operations did."
    return story


def verb(op: Interval) -> str | None:
    """acquire, release or renew, whatever the history calls it."""
    named = RW_F.get(op.invoke.f)
    return named[0] if named is not None else LOCK_F.get(op.invoke.f)


def _refused(story: Story) -> bool:
    for op in story.ops:
        seen = observed(op)
        if seen is None:
            continue
        told = f"{who(op)} was told {seen!r} at {story.at(op.return_ns)} ({story.letter(op)})"
        if verb(op) == ACQUIRE:
            story.kind = "busy-without-holder"
            story.says = f"{told}, but at no moment of that request did anybody hold the lock."
        else:
            story.kind = "lost-lock"
            story.says = (
                f"{told}, although it had been granted the lock and nothing on record can have "
                "ended that hold before."
            )
        return True
    return False


def _end(story: Story, proof: Interval) -> int | None:
    """When the hold that ``proof`` confirms may end at the earliest: release asked, or lease."""
    mine = identity(proof, story.model)
    ends: list[int] = []
    refreshed = proof.call_ns
    grants = 0
    for op in story.scope:
        if identity(op, story.model) != mine:
            continue
        grants += verb(op) == ACQUIRE and op.outcome == Type.OK
        if verb(op) == RELEASE and op.outcome != Type.FAIL and op.call_ns >= proof.call_ns:
            ends.append(op.call_ns)
        if verb(op) == RENEW and op.outcome == Type.OK:
            refreshed = max(refreshed, op.call_ns)
    if story.model.name == "reentrant":  # as many releases as grants
        ends = sorted(ends)[grants - 1 : grants] if grants else []
    ttl_ns = integer(proof.field("ttl_ns")) or getattr(story.model, "ttl_ns", None)
    if story.model.name == "lease" and ttl_ns is not None:
        ends.append(refreshed + ttl_ns)
    return min(ends, default=None)


def _overlap(story: Story) -> bool:
    """Holds that certainly overlap: each is confirmed by a grant or a renew in the proof."""
    confirmed: dict[Hashable, Interval] = {}
    for op in story.ops:
        if verb(op) in (ACQUIRE, RENEW) and op.outcome == Type.OK:
            confirmed.setdefault(identity(op, story.model), op)
    proofs = list(confirmed.values())
    semaphore = story.model.name == "semaphore"
    if len(proofs) < 2 or (semaphore and len(proofs) < len(story.ops)):
        return _confirmed(story, proofs)
    told = [op.return_ns or 0 for op in proofs]
    ends = [_end(story, op) for op in proofs]
    closed = [end for end in ends if end is not None]
    last = max(proofs, key=lambda op: op.return_ns or 0)
    if closed and min(closed) <= max(told):
        return False
    story.overlap_ns = min(closed) - max(told) if closed else None
    others = [op for op in proofs if op is not last]
    held = " and ".join(f"{who(op)} ({story.letter(op)})" for op in others)
    end = min((e for e, op in zip(ends, proofs, strict=True) if op is not last and e), default=None)
    until = "has no end on record" if end is None else f"cannot end before {story.at(end)}"
    lasts = "" if story.overlap_ns is None else f" All held for {story.at(story.overlap_ns)}."
    if not semaphore and story.overlap_ns is not None:
        lasts = lasts.replace("All", "Both")
    story.kind = "too-many-holders" if semaphore else "double-grant"
    if story.model.name == "lease":
        story.kind = "early-takeover"
    story.says = (
        f"{who(last)} was told at {story.at(last.return_ns)} that it holds the lock "
        f"({story.letter(last)}), but the hold of {held} {until}.{lasts}"
    )
    return True


def _confirmed(story: Story, proofs: list[Interval]) -> bool:
    """A hold of unknown grant, confirmed by a later answer, that has no room beside the others."""
    enders = [op for op in story.ops if verb(op) in (RELEASE, RENEW) and op.outcome == Type.OK]
    if len({identity(op, story.model) for op in story.ops}) == 1:
        return _too_many_releases(story, enders)
    own = {identity(op, story.model) for op in proofs}
    for op in enders:
        if not proofs or identity(op, story.model) in own:
            continue
        others = " and ".join(f"{who(one)} ({story.letter(one)})" for one in proofs)
        story.kind = "no-room-for-hold"
        story.says = (
            f"{who(op)} got an ok for its {op.invoke.f} ({story.letter(op)}), so it held the lock "
            f"at some moment between {story.at(op.call_ns)} and {story.at(op.return_ns)}; but at "
            f"none of them did {others} leave room for it."
        )
        return True
    return False


def _too_many_releases(story: Story, enders: list[Interval]) -> bool:
    if not enders:
        return False
    last = enders[-1]
    grants = sum(verb(op) == ACQUIRE and op.call_ns <= last.call_ns for op in story.scope)
    story.kind = "release-without-hold"
    story.says = (
        f"{who(last)} got an ok for its {last.invoke.f} ({story.letter(last)}) at "
        f"{story.at(last.return_ns)}, which needs a hold; it had asked for {grants} until then, "
        f"and {len(enders)} answers in this proof need one."
    )
    return True


def _tokens(story: Story) -> bool:
    grants = [op for op in story.ops if verb(op) == ACQUIRE and op.outcome == Type.OK]
    tokens = [integer(op.field("token")) for op in grants]
    if story.model.name != "fenced" or not grants:
        return False
    if None in tokens:
        bare = grants[tokens.index(None)]
        story.kind = "grant-without-token"
        story.says = f"{who(bare)} was granted the lock without a fencing token."
        return True
    if len(grants) < 2:
        return False
    first, second = grants[0], grants[-1]
    story.kind = "duplicate-token" if tokens[0] == tokens[-1] else "token-inversion"
    story.says = (
        f"{who(second)} was granted the lock with token {tokens[-1]} ({story.letter(second)}) "
        f"after {who(first)} had it with token {tokens[0]} ({story.letter(first)}); a later grant "
        "must have a greater token."
    )
    return True


def _store(story: Story) -> bool:
    if story.model.name != "store":
        return False
    story.side = Side.RESOURCE
    refused = [op for op in story.ops if observed(op)]
    accepted = [op for op in story.ops if not observed(op)]
    if refused and accepted:
        op, last = refused[0], max(accepted, key=lambda op: op.call_ns)
        story.kind = "stale-write-accepted"
        story.says = (
            f"The write with token {op.field('token')} ({story.letter(op)}) was refused as stale "
            f"at {story.at(op.return_ns)}, so a greater token had been accepted; yet the one with "
            f"token {last.field('token')} ({story.letter(last)}) was accepted, asked for at "
            f"{story.at(last.call_ns)}."
        )
        return True
    if refused:
        op = refused[0]
        story.kind = "refused-without-reason"
        story.says = (
            f"The write with token {op.field('token')} ({story.letter(op)}) was refused as stale "
            f"at {story.at(op.return_ns)}, but no greater token can have been accepted by then."
        )
        return True
    last = max(story.ops, key=lambda op: op.call_ns)
    story.kind = "stale-write-accepted"
    story.says = (
        f"The write with token {last.field('token')} ({story.letter(last)}) was accepted, although "
        f"it was asked for at {story.at(last.call_ns)}, after a greater token had been seen."
    )
    return True


def _register(story: Story) -> bool:
    story.side = Side.RESOURCE
    reads = [op for op in story.ops if op.invoke.f in ("read", "get") and op.complete is not None]
    if not reads:
        return _same_value_replaced(story)
    last = max(reads, key=lambda op: op.return_ns or 0)
    value = last.complete.value if last.complete is not None else None
    story.kind = "impossible-read"
    story.says = (
        f"{who(last)} read {value!r} between {story.at(last.call_ns)} and "
        f"{story.at(last.return_ns)} ({story.letter(last)}), a value that cannot have been there "
        "at any moment of that time."
    )
    return True


def _same_value_replaced(story: Story) -> bool:
    swaps = [op for op in story.ops if op.invoke.f == "cas" and op.outcome == Type.OK]
    olds = [op.invoke.value[0] for op in swaps if isinstance(op.invoke.value, list)]
    if len(swaps) < 2 or len(swaps) != len(story.ops) or len(set(map(repr, olds))) > 1:
        return False
    story.kind = "lost-update"
    story.says = (
        f"{' and '.join(who(op) for op in swaps)} each replaced the value {olds[0]!r} "
        f"({', '.join(story.letter(op) for op in swaps)}), more often than it was there."
    )
    return True


def _plain(story: Story) -> None:
    story.says = (
        f"no order of these {len(story.ops)} operations that respects time is legal for "
        f"{story.model.name}."
    )
