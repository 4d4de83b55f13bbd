"""The lock monitors as online algorithms: constant work per event, memory for what is open only.

    online = Online(ttl_ns=10_000_000);  online.feed(batch of lines);  online.finish()

Completions do the work, invokes are just remembered.  Per key, the granted holds stand in a queue
in order of their grants' returns, and the first is *settled* as soon as nothing more can change it:
it was released, or another was granted after it and none of its own operations is under way.  To
settle a hold is to judge it against the one before: zones for the mutex, earliest points for the
lease (the batch form's ``chain``), tokens, believed windows.

A hold of unknown grant whose release is confirmed needs one instant: it waits as a ``Moment`` until
the holds around it are settled, and takes a token that the grants around it left out (jobs by
deadline into the first gap with room).

Where that is not enough the key is put ``aside`` with the reason, and the caller judges it by the
batch monitors.  Traps: lines must be in time order; equal times are concurrent, so nothing is
settled before a later event; forgetting (HOLDS_REMEMBERED_MAX) is never silent.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from checkers.models.base import LOCK_F, NOT_HELD, STALE, integer
from checkers.monitors.lease import shortest
from checkers.monitors.span import INF, Verdict
from checkers.online_keys import Hold, Line, Lock, Moment, Resource
from checkers.online_says import FENCED, LEASE, LOCKS, MUTEX, Says
from checkers.online_wait import Waits
from harness.core.errors import UserError
from harness.core.history import NEMESIS
from harness.core.limits import HOLDS_REMEMBERED_MAX, QUEUE_MAX

ACQUIRE, RELEASE, RENEW, WRITE = "acquire", "release", "renew", "write"


class Online:
    """All online monitors; see the module."""

    def __init__(
        self, *, ttl_ns: int | None = None, drift_ppm: int = 0, enforced: bool = True
    ) -> None:
        self.drift_ppm, self.enforced = drift_ppm, enforced
        self.lasts = INF if ttl_ns is None else shortest(ttl_ns, drift_ppm)
        self.trusted = INF if ttl_ns is None else ttl_ns
        self.pending: dict[int | str, Line | None] = {}
        self.locks: dict[str | None, Lock] = {}
        self.resources: dict[str | None, Resource] = {}
        self.holds: dict[Any, Hold] = {}  # granted and not ended
        self.unknown: OrderedDict[Any, Line] = OrderedDict()  # acquires of unknown outcome
        self.ended: OrderedDict[Any, Hold] = OrderedDict()  # unknown release, lapsed, refused
        self.owners: dict[int | str, int | str] = {}  # only of operations without a hold id
        self.forgot = False
        self.aside: dict[str | None, str] = {}
        self.now = self.events = self.workers = 0
        self.last_index = -1
        self.says = Says()
        self.waits = Waits()
        self._on: dict[str, dict[str, Any]] = {
            "ok": _table(self.granted, self.released, self.renewed, self.wrote),
            "fail": _table(self.refused, self.not_ended, self.not_ended, self.unwritten),
            "info": _table(self.maybe_granted, self.maybe_released, None, None),
        }

    def feed(self, batch: list[Line]) -> None:
        """Takes the next events.  UserError if they are malformed (nothing is judged then)."""
        pending, now, last = self.pending, self.now, self.last_index
        on, get = self._on, self.pending.get
        for event in batch:
            time, index, process = event.time, event.index, event.process
            if time < now or index <= last:
                raise UserError(self.says.out_of_order(event, now, last))
            now, last = time, index
            invoke = get(process)
            kind = event.type
            if kind == "invoke":
                if invoke is not None:
                    self.now = now
                    self.abandon(invoke)
                pending[process] = event
                if event.f == WRITE:
                    self.asked_to_write(event)
                continue
            if invoke is None or event.f != invoke.f or event.key != invoke.key:
                self.unpaired(event, invoke)
                continue
            pending[process] = None
            handler = on[kind].get(invoke.f)
            if handler is not None:
                self.now = now
                handler(invoke, event)
            if kind == "info":
                if not self.workers:
                    self.workers = len(pending)
                del pending[process]  # by the session rule it is not heard of again
        self.now, self.last_index = now, last
        self.events += len(batch)

    def unpaired(self, event: Line, invoke: Line | None) -> None:
        """Only the nemesis, and a signal of loss, come without an invoke."""
        if event.f == "lost":
            self.told_lost(event)
        elif event.process != NEMESIS:
            raise UserError(self.says.unpaired(event, invoke))

    def abandon(self, invoke: Line) -> None:
        """An operation that never completes, since its process goes on: unknown for ever."""
        handler = self._on["info"].get(invoke.f)
        if handler is not None:
            handler(invoke, invoke)

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
        if owner is not None and self.owners.setdefault(invoke.process, owner) != owner:
            self.put_aside(invoke.key, "a process acts for several owners")
        return (invoke.key, invoke.process if owner is None else owner)

    # Locks.

    def granted(self, invoke: Line, event: Line) -> None:
        """An acquire was answered ok."""
        key, value, sent = invoke.key, event.value, invoke.value
        lock = self.locks.get(key)
        if lock is None:
            lock = self.locks[key] = Lock(key)
        name = sent.hold
        if name is None:
            name = self.hold_id(invoke, event)
        given = sent.token if value.token is None else value.token
        token = integer(given) if isinstance(given, str) else given
        call = invoke.time
        hold = Hold(name, invoke.process, lock, call, event.time, event.index, token, call)
        ttl_ns = sent.ttl_ns if value.ttl_ns is None else value.ttl_ns
        if ttl_ns is None:
            hold.lasts, hold.trusted = self.lasts, self.trusted
        else:
            hold.lasts, hold.trusted = shortest(ttl_ns, self.drift_ppm), ttl_ns
        if self.enforced:
            hold.deadline = call + hold.trusted  # INF + call is later than all times, too
        if name in self.holds or name in self.unknown or name in self.ended:
            self.put_aside(key, f"hold {name!r} was used again before its end was known")
        self.holds[name] = hold
        lock.last_a = event.time
        queue = lock.queue
        queue.append(hold)
        self.waits.granted(invoke, event.time, self.pending)
        if len(queue) > 1:
            self.settle(lock)

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
                    self.remember(self.ended, hold.name, hold)
                hold.taker = queue[1]
            queue.popleft()
            self.judge(lock, hold)

    def under_way(self, hold: Hold) -> bool:
        """Whether some operation of this hold is pending."""
        key = hold.lock.key
        return any(
            invoke is not None
            and invoke.key == key
            and invoke.f not in _ACQUIRES
            and self.hold_id(invoke, invoke) == hold.name
            for invoke in self.pending.values()
        )

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
                if invoke is not None
                and invoke.key == hold.lock.key
                and LOCK_F.get(invoke.f) == RELEASE
                and self.hold_id(invoke, invoke) == hold.name
            ),
            default=INF,
        )

    def remember(self, where: OrderedDict[Any, Any], name: Any, what: Any) -> None:
        """Keeps what a later event may ask for; the oldest is forgotten, and that is noted."""
        where[name] = what
        if len(where) > HOLDS_REMEMBERED_MAX:
            where.popitem(last=False)
            self.forgot = True

    def judge(self, lock: Lock, hold: Hold) -> None:
        """The hold against what came before it on its key."""
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
            says.early_takeover(before, hold, lock.free, late)
        if hold.refused and not hold.asked and hold.refused < free:
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
            says.tokens += 1
        else:
            says.tokenless(hold)
        end = hold.believed if hold.believed < hold.deadline else hold.deadline
        if end > a:
            if lock.believed > a or lock.believers:
                self.compare_beliefs(lock, hold, end)
            if not hold.sure:
                lock.believers.append(hold)
            elif end > lock.believed:
                lock.believed, lock.believer = end, hold
        if b > lock.reach:
            lock.reach, lock.reach_by = b, hold
        lock.free, lock.free_by = free, hold

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

    def released(self, invoke: Line, event: Line) -> None:
        """A release was answered ok."""
        name = invoke.value.hold
        if name is None:
            name = self.hold_id(invoke, event)
        hold = self.holds.pop(name, None)
        if hold is None:
            self.ended_strangely(name, invoke, event)
        else:
            self.end(hold, invoke, event)

    def end(self, hold: Hold, invoke: Line, event: Line) -> None:
        """The hold surely lasted to the call of this release, and no longer than its answer."""
        call = invoke.time
        lock = hold.lock
        if call <= hold.a:
            self.in_turn(hold, invoke)
        if call <= lock.last_a:
            self.apart(lock, hold, invoke)
        hold.b, hold.closer = call, invoke.index
        hold.released = hold.sure = True
        if call < hold.believed:
            hold.believed = call
        if invoke.value.token is not None or event.value.token is not None:
            self.named(hold, invoke, event)
        queue = lock.queue
        if queue[0] is hold:
            queue.popleft()
            self.judge(lock, hold)
            if queue:
                self.settle(lock)

    def in_turn(self, hold: Hold, invoke: Line) -> None:
        """Operations of a hold come one after the other, else the batch form is asked."""
        if invoke.time < hold.a or (invoke.time == hold.a and invoke.process != hold.process):
            self.put_aside(invoke.key, "a hold had two operations at once")

    def apart(self, lock: Lock, hold: Hold, invoke: Line) -> None:
        """A process that confirms one hold and ends another at one instant: not for zones."""
        near = [*lock.queue, lock.free_by, lock.reach_by]
        for other in near:
            if (
                other is not None
                and other is not hold
                and other.a == invoke.time
                and other.process == invoke.process
            ):
                self.put_aside(lock.key, "a process used two holds at one instant")

    def named(self, hold: Hold, invoke: Line, event: Line) -> None:
        """A release or renew that names a token must name the right one."""
        token = _token(invoke, event)
        if token is not None and token != hold.token:
            self.says.mismatch(hold, token, event)

    def ended_strangely(self, name: Any, invoke: Line, event: Line) -> None:
        """An ok release or renew of a hold that is not known as held."""
        key, releases = invoke.key, LOCK_F[invoke.f] == RELEASE
        self.stranger(name, invoke)
        asked, hold = self.unknown.get(name), self.ended.get(name)
        if asked is not None:
            if not releases or isinstance(name, tuple):
                self.put_aside(key, "a grant of unknown outcome was renewed, or has no hold id")
                return
            self.unknown.pop(name)
            self.moment(name, invoke, event)
        elif hold is None:
            return
        elif hold.refused or isinstance(name, tuple):
            self.put_aside(key, f"hold {name!r} was confirmed after it had ended")
        elif hold.taker is None and releases:
            # Still in the queue: only now it is certain when it ended.
            del self.ended[name]
            self.end(hold, invoke, event)
        elif hold.taker is not None and invoke.time > hold.taker.a:
            self.says.after_end(hold, invoke, event, LEASE)
            if hold.asked:
                self.says.double_grant(hold, hold.taker)
        else:
            self.put_aside(key, f"hold {name!r} was confirmed after its release was asked")

    def stranger(self, name: Any, invoke: Line) -> None:
        """An operation of a hold that was never granted, or that ended, or was forgotten."""
        hold = self.ended.get(name)
        if hold is not None and LOCK_F[invoke.f] == RELEASE:
            hold.believed = min(hold.believed, max(hold.a, invoke.time))
        if name not in self.unknown and name not in self.ended:
            self.put_aside(invoke.key, f"{invoke.f} of hold {name!r}, which nobody was granted")

    def moment(self, name: Any, invoke: Line, event: Line) -> None:
        """Grant unknown, release ok: it held for an instant between the two times."""
        lock = self.locks.get(invoke.key)
        if lock is None:
            lock = self.locks[invoke.key] = Lock(invoke.key)
        self.says.grants_unknown += 1
        if _token(invoke, event) is not None:
            self.put_aside(invoke.key, "a release names the token of an unknown grant")
        lock.moments.append(
            Moment(name, invoke.process, invoke.time, event.time, invoke.index, event.index)
        )

    def renewed(self, invoke: Line, event: Line) -> None:
        """A renew was answered ok."""
        name = self.hold_id(invoke, event)
        hold = self.holds.get(name)
        if hold is None:
            self.ended_strangely(name, invoke, event)
            return
        self.in_turn(hold, invoke)
        if hold.renews is None:
            hold.renews = []
        hold.renews.append((invoke.time, event.time))
        hold.refreshed = invoke.time
        value = invoke.value
        if event.time < hold.deadline < INF:
            hold.deadline = invoke.time + hold.trusted
        if value.ttl_ns is not None:
            hold.lasts = shortest(value.ttl_ns, self.drift_ppm)
            if event.time < hold.deadline < INF:
                hold.deadline = invoke.time + value.ttl_ns
        self.named(hold, invoke, event)

    def not_ended(self, invoke: Line, event: Line) -> None:
        """A release or renew was refused."""
        renews = LOCK_F[invoke.f] == RENEW
        name = self.hold_id(invoke, event)
        hold = self.holds.get(name)
        if hold is None:
            self.stranger(name, invoke)
            return
        self.in_turn(hold, invoke)
        hold.believed = min(hold.believed, event.time if renews else invoke.time)
        if event.error != NOT_HELD:
            return
        if self.under_way(hold):
            self.put_aside(invoke.key, "a hold had two operations at once")
        del self.holds[name]
        self.remember(self.ended, name, hold)
        hold.refused, hold.closer, hold.sure = event.time, event.index, True
        self.says.lost(hold, event.index, event.time, MUTEX, FENCED)
        self.settle(hold.lock)

    def refused(self, invoke: Line, event: Line) -> None:
        """An acquire was refused, or gave up for certain."""
        self.waits.refusals += 1

    def maybe_granted(self, invoke: Line, event: Line) -> None:
        """An acquire of unknown outcome."""
        self.remember(self.unknown, self.hold_id(invoke, event), invoke)

    def maybe_released(self, invoke: Line, event: Line) -> None:
        """A release of unknown outcome: the hold may have ended, from its call on."""
        name = self.hold_id(invoke, event)
        hold = self.holds.pop(name, None)
        if hold is None:
            self.stranger(name, invoke)
        else:
            self.in_turn(hold, invoke)
            self.apart(hold.lock, hold, invoke)
            hold.asked, hold.b, hold.closer = True, invoke.time, invoke.index
            hold.believed = min(hold.believed, invoke.time)
            self.remember(self.ended, name, hold)
            self.settle(hold.lock)

    def told_lost(self, event: Line) -> None:
        """A client was told that its lock is lost: it stops believing."""
        hold = self.holds.get(self.hold_id(event, event))
        if hold is not None:
            hold.believed = min(hold.believed, event.time)

    # The fenced resource.

    def asked_to_write(self, invoke: Line) -> None:
        """Remembers the greatest token accepted before this call."""
        resource = self.resources.get(invoke.key)
        if resource is None:
            resource = self.resources[invoke.key] = Resource(invoke.key)
        if resource.at == invoke.time:
            self.put_aside(invoke.key, "a write begins at the instant at which another ended")
        invoke.floor, invoke.floor_by = resource.greatest, resource.greatest_by

    def wrote(self, invoke: Line, event: Line) -> None:
        """A write was accepted."""
        token = _token(invoke, event)
        if token is None:
            self.put_aside(invoke.key, "some writes carry no token")
            return
        resource = self.resources[invoke.key]
        self.says.accepted += 1
        if token < invoke.floor:
            self.says.stale_write(invoke, event, token)
        resource.at = event.time
        if token > resource.greatest:
            resource.greatest, resource.greatest_by = token, event.index

    def unwritten(self, invoke: Line, event: Line) -> None:
        """A write was refused; as stale, it needs a greater token accepted before."""
        if event.error != STALE:
            return
        token = _token(invoke, event)
        self.says.stale_refused += 1
        if token is None or token >= self.resources[invoke.key].greatest:
            # Only a write of unknown outcome, or one under way, can explain it: rare.
            self.put_aside(invoke.key, "a refusal that no accepted write explains")

    def finish(self) -> dict[str, Verdict]:
        """Everything is known now: settles what is left and gives the verdicts."""
        for invoke in list(self.pending.values()):
            if invoke is not None:
                self.abandon(invoke)
        for lock in self.locks.values():
            while lock.queue:
                hold = lock.queue.popleft()
                hold.believed = min(hold.believed, max(hold.a, self.now))
                self.judge(lock, hold)
            for moment in lock.moments:
                if not moment.placed and lock.free > moment.high and lock.free_by is not None:
                    self.says.no_instant(lock.free_by, moment, LEASE)
        return self.says.verdicts(self)


_ACQUIRES = frozenset(name for name, word in LOCK_F.items() if word == ACQUIRE)


def _table(acquire: Any, release: Any, renew: Any, write: Any) -> dict[str, Any]:
    """Handlers by the names that histories use."""
    by_word = {ACQUIRE: acquire, RELEASE: release, RENEW: renew}
    return {**{name: by_word[word] for name, word in LOCK_F.items()}, WRITE: write}


def _token(invoke: Line, event: Line) -> int | None:
    token = event.value.token
    if token is None:
        token = invoke.value.token
    return integer(token) if isinstance(token, str) else token


def earliest(hold: Hold, free: int) -> tuple[int, int]:
    """(by how much it was granted too early, from when the next may hold), if the one before it
    ends at ``free``; every point as early as it can be (see ``monitors.lease``)."""
    point = hold.call if hold.call > free else free
    late = point - hold.a if point > hold.a else 0
    if hold.renews is not None:
        for call, ret in hold.renews:
            if call > point:
                point = call
            elif point > ret:
                late = late or point - ret
    if hold.released:
        return late, hold.b if hold.b > point else point
    over = point + hold.lasts
    if hold.asked:
        return late, min(over, max(hold.b, point))
    return late, over


__all__ = ["LOCKS", "Online", "earliest"]
