"""How online monitors judge a hold once its end is certain: zones, leases, tokens, beliefs.

``Judge`` keeps what is remembered of locks; ``online_locks`` tells it what happened.  The formulas
are those of ``monitors.mutex``, ``monitors.lease`` and ``monitors.belief``.

Trap: a hold that is clear of all others is not judged but noted (``Locks.released``), because that
happens a million times; ``unfold`` catches up when somebody comes close.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any

from checkers.models.base import LOCK_F, integer
from checkers.monitors.lease import shortest
from checkers.monitors.span import INF
from checkers.online_keys import Grant, Hold, Line, Lock
from checkers.online_says import FENCED, LEASE, MUTEX, Says
from checkers.online_wait import Waits
from harness.core.limits import HOLDS_OVER_MAX, HOLDS_UNSURE_MAX, QUEUE_MAX

ACQUIRE, RELEASE, RENEW = "acquire", "release", "renew"
_ACQUIRES = frozenset(name for name, word in LOCK_F.items() if word == ACQUIRE)
_OWNERS_MAX = 1 << 10  # processes whose owner is kept before it is looked who needs it


class Judge:
    """The locks of a stream; times come from ``now``, pending operations from ``pending``."""

    def __init__(self, *, ttl_ns: int | None, drift_ppm: int, enforced: bool) -> None:
        self.drift_ppm, self.enforced = drift_ppm, enforced
        self.lasts = INF if ttl_ns is None else shortest(ttl_ns, drift_ppm)
        self.trusted = INF if ttl_ns is None else ttl_ns
        self.pending: dict[int | str, Line] = {}
        self.locks: dict[str | None, Lock] = {}
        self.holds: dict[Any, Hold | Lock] = {}  # granted and not ended; a Lock: see its ``fresh``
        self.unknown: OrderedDict[Any, None] = OrderedDict()  # acquires of unknown outcome
        self.ended: OrderedDict[Any, Hold] = OrderedDict()  # unknown release, lapsed, refused
        self.over: deque[Any] = deque()  # those of them whose release was told "not held"
        self.owners: dict[int | str, int | str] = {}  # only of operations without a hold id
        self.owners_max = _OWNERS_MAX
        self.forgot = False  # one that may still believe
        self.aside: dict[str | None, str] = {}
        self.now = 0
        self.since = 0  # nothing that is pending, or will be, was asked before
        self.says = Says()
        self.waits = Waits()

    def put_aside(self, key: str | None, why: str) -> None:
        """Leaves a key to the batch monitors."""
        self.aside.setdefault(key, why)

    def hold_id(self, invoke: Line, event: Line) -> Any:
        """The hold id, else (key, owner or process) for histories without."""
        value, later = invoke.value, event.value
        name = later.hold if value.hold is None else value.hold
        if name is not None:
            return name
        owner = later.owner if value.owner is None else value.owner
        if owner is not None:
            if len(self.owners) > self.owners_max:
                self.drop_owners()
            if self.owners.setdefault(invoke.process, owner) != owner:
                self.put_aside(invoke.key, "a process acts for several owners")
        identity = (invoke.key, invoke.process if owner is None else owner)
        if identity in self.unknown:
            self.put_aside(invoke.key, "an owner went on after an unknown outcome")
        return identity

    def drop_owners(self) -> None:
        """A process that asks for nothing and holds nothing may as well go on for somebody else."""
        busy = set(self.pending)
        for lock in self.locks.values():
            if lock.fresh is not None:
                busy.add(lock.fresh[0].process)
            busy.update(hold.process for hold in (*lock.queue, *lock.believers))
        busy.update(hold.process for hold in self.ended.values())
        self.owners = {who: owner for who, owner in self.owners.items() if who in busy}
        self.owners_max = max(_OWNERS_MAX, 2 * len(self.owners))

    def hold_of(self, lock: Lock, invoke: Line, event: Line) -> Hold:
        """The hold that an acquire was granted."""
        sent, value, call = invoke.value, event.value, invoke.time
        name = sent.hold
        if name is None:
            name = self.hold_id(invoke, event)
        token: Any = sent.token if value.token is None else value.token
        if token.__class__ is str:
            token = integer(token)
        ttl_ns = sent.ttl_ns if value.ttl_ns is None else value.ttl_ns
        lasts, trusted = self.lasts, self.trusted
        if ttl_ns is not None and ttl_ns != trusted:
            lasts, trusted = shortest(ttl_ns, self.drift_ppm), ttl_ns
        deadline = call + trusted if self.enforced else INF  # INF + call is later than all, too
        process, a, index = invoke.process, event.time, event.index
        return Hold(name, process, lock, call, a, index, token, call, lasts, trusted, deadline)

    def enrol(self, lock: Lock, fresh: Grant) -> Hold:
        """Puts a grant that was just noted into the queue, because somebody comes close."""
        hold = self.hold_of(lock, *fresh)
        lock.fresh = None
        lock.queue.append(hold)
        if self.holds.get(hold.name) is lock:
            self.holds[hold.name] = hold
        return hold

    def held(self, name: Any) -> Hold | None:
        """The hold with this name that was granted and has not ended."""
        found = self.holds.get(name)
        if not isinstance(found, Lock):
            return found
        return None if found.fresh is None else self.enrol(found, found.fresh)

    def settle(self, lock: Lock) -> None:
        """Judges the holds at the head of the queue whose end is certain."""
        queue = lock.queue
        while queue:
            hold = queue[0]
            if not hold.sure:
                if len(queue) < 2 or queue[1].a >= self.now:
                    return
                if self.under_way(hold):
                    if len(queue) < QUEUE_MAX:
                        return
                    self.put_aside(lock.key, "an operation that never ends holds up the judging")
                if not hold.asked:
                    self.holds.pop(hold.name, None)
                    self.keep(hold)
                if self.ended.get(hold.name) is hold:
                    hold.taker = queue[1]
            queue.popleft()
            self.judge(lock, hold)

    def under_way(self, hold: Hold, but: Line | None = None) -> bool:
        """Whether some operation of this hold is pending, other than ``but``."""
        key = hold.lock.key
        return any(
            invoke.key == key
            and invoke is not but
            and invoke.f not in _ACQUIRES
            and self.hold_id(invoke, invoke) == hold.name
            for invoke in self.pending.values()
        )

    def keep(self, hold: Hold) -> None:
        """Keeps a hold that ended somehow, since it may be confirmed later; not the oldest."""
        self.ended[hold.name] = hold
        if len(self.ended) > HOLDS_UNSURE_MAX:
            self.forget(next(iter(self.ended)))

    def forget(self, name: Any) -> None:
        """Lets a hold go: if it is confirmed all the same, the batch monitors judge its key."""
        self.unknown.pop(name, None)
        hold = self.ended.pop(name, None)
        if hold is not None:
            hold.taker = None  # else the first of a row of holds that lapsed would keep them all
            if hold.belief_end > self.now:
                self.forgot = True  # a signal of loss may still be for it

    def told_over(self, name: Any) -> None:
        """The service said that this hold is over: hardly anybody asks for it once more."""
        self.over.append(name)
        if len(self.over) > HOLDS_OVER_MAX:
            self.forget(self.over.popleft())

    def judge(self, lock: Lock, hold: Hold) -> None:
        """The hold against what came before it on its key."""
        self.unfold(lock)
        says, a, b = self.says, hold.a, hold.b
        clash = lock.reach > a
        if clash and lock.reach_by is not None:
            says.double_grant(lock.reach_by, hold)
        if lock.moments:
            self.place(lock, hold)
        late, free = earliest(hold, lock.free)
        if b <= a and (clash or late):
            self.put_aside(lock.key, "a hold began and ended at one instant")
        before = lock.free_by
        if late and before is not None:
            says.early_takeover(before, hold, late)
        if 0 <= hold.refused < free and not hold.asked:
            says.lost(hold, hold.closer, hold.refused, LEASE)
        if not hold.released and not hold.asked and free <= a:
            self.put_aside(lock.key, "a TTL shorter than the call it was granted in")
        token, last = hold.token, lock.token_by
        if token is not None:
            if last is not None and lock.token is not None and token <= lock.token:
                if not (late if hold.lasts < INF else clash):
                    says.token(last, hold)
            else:
                if not lock.moments:
                    lock.add_gap(a, token)
                lock.token, lock.token_by = token, hold
        else:
            says.tokenless(hold)
        end = hold.believed if hold.believed < hold.deadline else hold.deadline
        if end > a:
            if lock.believed > a or lock.believers:
                self.compare_beliefs(lock, hold, end)
            if not hold.sure:
                lock.believers.append(hold)
                if len(lock.believers) > QUEUE_MAX:
                    lock.believers.clear()
                    self.put_aside(lock.key, f"more than {QUEUE_MAX} believe that they hold")
            elif end > lock.believed:
                lock.believed, lock.believer = end, hold
        if b > lock.reach:
            lock.reach, lock.reach_by = b, hold
        lock.free, lock.free_by = free, hold
        lock.clear = max(lock.reach, lock.free, lock.believed)
        if lock.believers or lock.moments or lock.token is None:
            lock.clear = INF

    def unfold(self, lock: Lock) -> None:
        """Writes out what the last hold stands for that was clear of all others: nothing before
        it matters any more, so ``released`` just noted it."""
        hold, closer = lock.latest, lock.closer
        if hold is not None and closer is not None:
            lock.latest = lock.closer = None
            if isinstance(hold, tuple):
                hold = self.hold_of(lock, *hold)
            hold.b, hold.closer = closer.time, closer.index
            hold.released = hold.sure = True
            hold.believed = min(hold.believed, hold.b)
            lock.reach = lock.free = hold.b
            lock.believed = hold.belief_end
            lock.token_by = lock.reach_by = lock.free_by = lock.believer = hold

    def compare_beliefs(self, lock: Lock, hold: Hold, end: int) -> None:
        """The window of this hold against earlier ones that may still be open."""
        a = hold.a
        lock.believers = [other for other in lock.believers if other.belief_end > a]
        others = list(lock.believers)
        if lock.believer is not None and lock.believed > a:
            others.append(lock.believer)
        for other in others:
            if other.process != hold.process and self.asked_ns(other) > a:
                self.says.believed(other, hold, min(end, other.belief_end, self.now))

    def asked_ns(self, hold: Hold) -> int:
        """When a release of this hold was asked that is still pending; INF if none is."""
        if hold.sure:
            return INF
        return min(
            (
                invoke.time
                for invoke in self.pending.values()
                if invoke.key == hold.lock.key
                and LOCK_F.get(invoke.f) == RELEASE
                and self.hold_id(invoke, invoke) == hold.name
            ),
            default=INF,
        )

    def place(self, lock: Lock, hold: Hold) -> None:
        """Holds of an instant: none may lie inside a zone, each needs an instant before the next
        hold of the lease ends, and a token from a gap that it fits in."""
        says, b, zone = self.says, hold.b, hold.zone_end
        if hold.token is not None and (lock.token is None or hold.token > lock.token):
            lock.add_gap(hold.a, hold.token)
        for moment in lock.moments:
            if hold.a < moment.low and moment.high < b:
                says.no_instant(hold, moment, MUTEX, FENCED)
            if not moment.spent and moment.high < zone and hold.token is not None:
                moment.spent = True
                if not lock.spend(moment):
                    if moment.low <= lock.gone:
                        self.put_aside(lock.key, "gaps between tokens had to be forgotten")
                    else:
                        says.no_token(lock, hold, moment)
        for moment in lock.moments:
            if moment.placed:
                continue
            if moment.high >= earliest(hold, lock.free)[1]:
                break
            moment.placed = True
            lock.free = max(lock.free, moment.low)
            if lock.free > moment.high or earliest(hold, lock.free)[0]:
                says.no_instant(hold, moment, LEASE)
        lock.moments = [m for m in lock.moments if not (m.placed and m.high < min(b, zone))]


def earliest(hold: Hold, free: int) -> tuple[int, int]:
    """(by how much it was granted too early, from when the next may hold), if the one before it
    ends at ``free``; every point as early as it can be (see ``monitors.lease``)."""
    point = hold.call if hold.call > free else free
    late = point - hold.a if point > hold.a else 0
    if point > hold.renewed:  # later than the first renew, and perhaps than others
        late = late or point - hold.renewed
    if hold.refreshed > point:
        point = hold.refreshed
    if hold.released:
        return late, hold.b if hold.b > point else point
    over = point + hold.lasts
    if hold.asked:
        return late, min(over, max(hold.b, point))
    return late, over
