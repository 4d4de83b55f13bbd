"""What the online monitors do with acquire, release and renew.

A grant joins the queue of its key, a release or a refusal ends its hold, and then the queue is
settled (``online_judge``).  What fits no hold that is known puts the key aside.
"""

from __future__ import annotations

from typing import Any

from checkers.models.base import LOCK_F, NOT_HELD, integer
from checkers.monitors.lease import shortest
from checkers.monitors.span import INF
from checkers.online_judge import RELEASE, RENEW, Judge
from checkers.online_keys import Hold, Line, Lock, Moment
from checkers.online_says import FENCED, LEASE, MUTEX
from harness.core.limits import HOLDS_UNSURE_MAX, QUEUE_MAX


class Locks(Judge):
    """Handlers of lock operations: ``handler(invoke, completion)``."""

    def granted(self, invoke: Line, event: Line) -> None:
        """An acquire was answered ok."""
        key, name, call, a = invoke.key, invoke.value.hold, invoke.time, event.time
        plain = name is not None and event.value.token.__class__ is int
        if name is None:
            name = self.hold_id(invoke, event)
        try:
            lock = self.locks[key]
        except KeyError:
            lock = self.lock(key)
        holds, waits = self.holds, self.waits
        if name in holds or name in self.unknown or name in self.ended:
            self.put_aside(key, f"hold {name!r} was used again before its end was known")
        waits.waited.append(a - call)
        waits.served.append(invoke.process)
        if lock.last_a > self.since:
            lock.recent.append((lock.last_call, lock.last_a))
            if lock.last_a > call:
                waits.passed_by(lock.recent, call)
        elif lock.recent:
            lock.recent.clear()  # they passed nobody
        lock.last_call = call
        lock.last_a = a
        if plain and not lock.queue and lock.fresh is None:
            lock.fresh = invoke, event
            holds[name] = lock
            return
        if lock.fresh is not None:
            self.enrol(lock, lock.fresh)
        hold = holds[name] = self.hold_of(lock, invoke, event)
        lock.queue.append(hold)
        if len(lock.queue) > 1:
            self.settle(lock)

    def released(self, invoke: Line, event: Line) -> None:
        """A release was answered ok."""
        sent, call = invoke.value, invoke.time
        name = sent.hold
        if name is None:
            name = self.hold_id(invoke, event)
        found = self.holds.pop(name, None)
        if found is None:
            self.ended_strangely(name, invoke, event)
            return
        fresh = None
        hold: Any = found
        lock: Any = found
        if found.__class__ is Lock:
            fresh = lock.fresh
            a, token, alone = fresh[1].time, fresh[1].value.token, True
        else:
            lock, a, token = hold.lock, hold.a, hold.token
            queue = lock.queue
            alone = (
                queue[0] is hold
                and (len(queue) == 1 or queue[1].a > call)  # who waited was granted meanwhile
                and hold.touched < call
                and token is not None
            )
        if (
            alone
            and lock.clear <= a < call
            and token > lock.token
            and sent.token is None
            and event.value.token is None
        ):
            # The usual case, a hold clear of all others, needs no judging (see ``unfold``).
            if token > lock.token + 1:
                lock.add_gap(a, token)
            lock.fresh = None
            lock.token = token
            lock.clear = call
            lock.latest = fresh or hold
            lock.closer = invoke
            if fresh is None:
                queue.popleft()
                if queue:
                    self.settle(lock)
        else:
            self.end(hold if fresh is None else self.enrol(lock, fresh), invoke, event)

    def lock(self, key: str | None) -> Lock:
        """The lock that is granted for the first time."""
        made = self.locks[key] = Lock(key)
        return made

    def end(self, hold: Hold, invoke: Line, event: Line) -> None:
        """The hold surely lasted to the call of this release, and no longer than its answer."""
        call = invoke.time
        lock = hold.lock
        if call <= hold.a or call <= hold.touched:
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
        last = hold.a if hold.touched < 0 else hold.touched
        if invoke.time < last or (invoke.time == last and invoke.process != hold.process):
            self.put_aside(invoke.key, "a hold had two operations at once")

    def apart(self, lock: Lock, hold: Hold, invoke: Line) -> None:
        """A process that confirms one hold and ends another at one instant: not for zones."""
        self.unfold(lock)
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
        token = token_of(invoke, event)
        if token is not None and token != hold.token:
            self.says.mismatch(hold, token, event)

    def ended_strangely(self, name: Any, invoke: Line, event: Line) -> None:
        """An ok release or renew of a hold that is not known as held."""
        key, releases = invoke.key, LOCK_F[invoke.f] == RELEASE
        self.stranger(name, invoke)
        hold = self.ended.get(name)
        if name in self.unknown:
            if not releases or isinstance(name, tuple):
                self.put_aside(key, "a grant of unknown outcome was renewed, or has no hold id")
                return
            del self.unknown[name]
            self.moment(name, invoke, event)
        elif hold is None:
            return
        elif hold.refused >= 0 or isinstance(name, tuple):
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
            if invoke.time <= hold.refused:
                self.put_aside(invoke.key, "a release and a refusal at one instant")
        if name not in self.unknown and name not in self.ended:
            self.put_aside(invoke.key, f"{invoke.f} of hold {name!r}, which nobody was granted")

    def moment(self, name: Any, invoke: Line, event: Line) -> None:
        """Grant unknown, release ok: it held for an instant between the two times."""
        lock = self.locks.get(invoke.key) or self.lock(invoke.key)
        self.says.grants_unknown += 1
        if token_of(invoke, event) is not None:
            self.put_aside(invoke.key, "a release names the token of an unknown grant")
        lock.moments.append(
            Moment(name, invoke.process, invoke.time, event.time, invoke.index, event.index)
        )
        if len(lock.moments) > QUEUE_MAX:
            lock.moments.clear()
            self.put_aside(lock.key, f"more than {QUEUE_MAX} unknown grants and no known one")
        lock.clear = INF

    def renewed(self, invoke: Line, event: Line) -> None:
        """A renew was answered ok."""
        name = self.hold_id(invoke, event)
        hold = self.held(name)
        if hold is None:
            self.ended_strangely(name, invoke, event)
            return
        self.in_turn(hold, invoke)
        hold.renewed = min(hold.renewed, event.time)
        hold.touched, hold.refreshed = event.time, invoke.time
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
        hold = self.held(name)
        if hold is None:
            self.stranger(name, invoke)
            ended = self.ended.get(name)
            if renews and ended is not None:
                ended.believed = min(ended.believed, event.time)
            if not renews and event.error == NOT_HELD:
                self.told_over(name)
            return
        self.in_turn(hold, invoke)
        hold.believed = min(hold.believed, event.time if renews else invoke.time)
        if event.error != NOT_HELD:
            return
        if self.under_way(hold):
            self.put_aside(invoke.key, "a hold had two operations at once")
        del self.holds[name]
        self.keep(hold)
        if not renews:
            self.told_over(name)
        hold.refused, hold.closer, hold.sure = event.time, event.index, True
        self.says.lost(hold, event.index, event.time, MUTEX, FENCED)
        self.settle(hold.lock)

    def refused(self, invoke: Line, event: Line) -> None:
        """An acquire was refused, or gave up for certain."""
        self.waits.refusals += 1

    def maybe_granted(self, invoke: Line, event: Line) -> None:
        """An acquire of unknown outcome."""
        self.unknown[self.hold_id(invoke, event)] = None
        if len(self.unknown) > HOLDS_UNSURE_MAX:
            self.forget(next(iter(self.unknown)))

    def maybe_released(self, invoke: Line, event: Line) -> None:
        """A release of unknown outcome: the hold may have ended, from its call on."""
        name = self.hold_id(invoke, event)
        hold = self.held(name)
        if hold is None:
            self.stranger(name, invoke)
        else:
            del self.holds[name]
            self.in_turn(hold, invoke)
            self.apart(hold.lock, hold, invoke)
            if self.under_way(hold, invoke):
                self.put_aside(invoke.key, "a hold had two operations at once")
            if token_of(invoke, event) not in (None, hold.token):
                self.put_aside(invoke.key, "a release of unknown outcome names another token")
            hold.asked, hold.b, hold.closer = True, invoke.time, invoke.index
            hold.believed = min(hold.believed, invoke.time)
            self.keep(hold)
            self.settle(hold.lock)

    def told_lost(self, event: Line) -> None:
        """A client was told that its lock is lost: it stops believing."""
        whose = event.value.process
        name: Any = event.value.hold
        if name is None:
            name = (event.key, event.process if whose is None else whose)
        hold = self.held(name) or self.ended.get(name)
        if hold is not None:
            hold.believed = min(hold.believed, event.time)
        elif self.forgot:
            self.put_aside(event.key, "a signal of loss, perhaps for a hold that was forgotten")


def token_of(invoke: Line, event: Line) -> int | None:
    token = event.value.token
    if token is None:
        token = invoke.value.token
    return integer(token) if isinstance(token, str) else token
