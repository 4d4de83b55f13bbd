"""What the online monitors found, put into words and verdicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from checkers.monitors.span import INF, NS_PER_MS, Verdict, ms, service
from checkers.online_keys import Hold, Line, Lock, Moment
from harness.core.limits import ANOMALIES_MAX
from harness.core.result import Anomaly, Side, Valid

if TYPE_CHECKING:
    from checkers.online import Online

MUTEX, FENCED, LEASE, BELIEF, STORE = "mutex", "fenced", "lease", "belief", "store"
LOCKS = (MUTEX, FENCED, LEASE)


class Says:
    """Collects anomalies per model and key; the count is exact, the list bounded."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str | None], list[Anomaly]] = {}
        self.counts: dict[tuple[str, str | None], int] = {}
        self.tokenless_count = self.accepted = self.stale_refused = self.grants_unknown = 0
        self.tokenless_holds: list[Hold] = []
        self.overlap_ns_max = 0

    def add(self, key: str | None, models: tuple[str, ...], make: Callable[[], Anomaly]) -> None:
        """Counts an anomaly; it is put into words only where its list has room, since a lock that
        broke may break a million times."""
        made: Anomaly | None = None
        for model in models:
            place = (model, key)
            count = self.counts[place] = self.counts.get(place, 0) + 1
            if count <= ANOMALIES_MAX:
                made = made or make()
                self.found.setdefault(place, []).append(made)

    def out_of_order(self, event: Line, now: int, last: int) -> str:
        if event.index <= last:
            return (
                f"event with index {event.index} comes after index {last}; indices must grow "
                "from line to line"
            )
        return (
            f"event with index {event.index} has time {event.time} ns after {now} ns; time must "
            "not go back, sort the events"
        )

    def unpaired(self, event: Line, invoke: Line | None) -> str:
        if invoke is None:
            return (
                f"event with index {event.index}: {event.type} of {event.f} by process "
                f"{event.process!r} has no pending invoke; remove it, or add its invoke"
            )
        return (
            f"event with index {event.index}: {event.f} on {event.key!r} completes the "
            f"{invoke.f} on {invoke.key!r} of index {invoke.index}; a completion repeats f and "
            "key of its invoke"
        )

    def double_grant(self, first: Hold, second: Hold) -> None:
        end = min(first.b, second.b)
        self.add(
            first.lock.key,
            (MUTEX, FENCED),
            lambda: self._overlap("double-grant", first, second, end),
        )

    def _overlap(self, kind: str, first: Hold, second: Hold, end: int) -> Anomaly:
        overlap_ns = None if end >= INF else max(0, end - second.a)
        held = "for good" if overlap_ns is None else f"for {ms(overlap_ns)}"
        ops = [first.event] + ([first.closer] if first.closer >= 0 else []) + [second.event]
        return service(
            kind,
            first.lock.key,
            f"process {second.process} was granted the lock by {ms(second.a)} while process "
            f"{first.process} surely held it since {ms(first.a)}: two holders {held}",
            ops,
            overlap_ns=overlap_ns,
            legal_if=f"process {first.process} had asked for its release before {ms(second.a)}",
        )

    def early_takeover(self, first: Hold, second: Hold, short_ns: int) -> None:
        self.add(first.lock.key, (LEASE,), lambda: self._early(first, second, short_ns))

    def _early(self, first: Hold, second: Hold, short_ns: int) -> Anomaly:
        if first.zone_end > second.a:
            end = min(first.zone_end, second.b)
            return self._overlap("double-grant", first, second, end)
        return service(
            "early-takeover",
            first.lock.key,
            f"process {second.process} was granted the lock by {ms(second.a)}, {ms(short_ns)} "
            f"before the hold of process {first.process} (granted by {ms(first.a)}) could have "
            "ended",
            [first.event, second.event],
            overlap_ns=short_ns,
            legal_if=f"it had been granted {ms(short_ns)} later",
        )

    def no_instant(self, hold: Hold, moment: Moment, *models: str) -> None:
        self.add(
            hold.lock.key,
            models,
            lambda: service(
                "no-free-instant",
                hold.lock.key,
                f"process {moment.process} was told at {ms(moment.high)} that hold "
                f"{moment.name!r} had been held (asked at {ms(moment.low)}), but process "
                f"{hold.process} surely held from {ms(hold.a)} to {ms(hold.b)}",
                [hold.event, moment.ask, moment.event],
                legal_if=f"process {hold.process} had asked for its release before "
                f"{ms(moment.high)}",
            ),
        )

    def token(self, first: Hold, second: Hold) -> None:
        same = first.token == second.token
        self.add(
            first.lock.key,
            (FENCED, LEASE),
            lambda: service(
                "token-duplicate" if same else "token-inversion",
                first.lock.key,
                f"process {first.process} was granted the lock by {ms(first.a)} with token "
                f"{first.token}, process {second.process} after it, by {ms(second.a)}, with token "
                f"{second.token}",
                [first.event, second.event],
                legal_if=f"the later grant had carried a token greater than {first.token}",
            ),
        )

    def tokenless(self, hold: Hold) -> None:
        """Only wrong if other grants carry tokens; see ``verdicts``."""
        self.tokenless_count += 1
        if len(self.tokenless_holds) < ANOMALIES_MAX:
            self.tokenless_holds.append(hold)

    def no_token(self, lock: Lock, hold: Hold, moment: Moment) -> None:
        self.add(
            lock.key,
            (FENCED, LEASE),
            lambda: service(
                "no-token-left",
                lock.key,
                f"hold {moment.name!r} was held for a moment between {ms(moment.low)} and "
                f"{ms(moment.high)}, so its grant used a token, but those around it (near "
                f"{hold.token}) leave none free",
                [moment.ask, moment.event, hold.event],
                legal_if="a token had been left out there",
            ),
        )

    def mismatch(self, hold: Hold, token: Any, event: Line) -> None:
        self.add(
            hold.lock.key,
            (FENCED, LEASE),
            lambda: service(
                "token-mismatch",
                hold.lock.key,
                f"process {event.process}: {event.f} with token {token} answered ok, but its hold "
                f"has token {hold.token}",
                [hold.event, event.index],
                legal_if="a wrong token had been refused",
            ),
        )

    def lost(self, hold: Hold, event: int, at: int, *models: str) -> None:
        self.add(
            hold.lock.key,
            models,
            lambda: service(
                "lost-lock",
                hold.lock.key,
                f"process {hold.process} held since {ms(hold.a)}, nobody had asked for its "
                f"release, and it was told at {ms(at)} that it does not hold",
                [hold.event, event],
                legal_if="a release had been asked, or its TTL had been over",
            ),
        )

    def after_end(self, hold: Hold, invoke: Line, event: Line, *models: str) -> None:
        self.add(
            invoke.key,
            models,
            lambda: service(
                "confirmed-after-its-end",
                invoke.key,
                f"process {event.process}: {event.f} answered ok at {ms(event.time)} although its "
                f"hold had ended",
                [hold.closer if hold.closer >= 0 else hold.event, event.index],
                legal_if=f"the {event.f} had answered that the lock is not held",
            ),
        )

    def believed(self, first: Hold, second: Hold, end: int) -> None:
        overlap_ns = end - second.a
        self.overlap_ns_max = max(self.overlap_ns_max, overlap_ns)
        ops = [first.event] + ([first.closer] if first.closer >= 0 else []) + [second.event]
        self.add(
            first.lock.key,
            (BELIEF,),
            lambda: service(
                "believed-overlap",
                first.lock.key,
                f"process {first.process} (since {ms(first.a)}) and process {second.process} "
                f"(since {ms(second.a)}) both believed to hold for {ms(overlap_ns)}",
                ops,
                overlap_ns=overlap_ns,
                side=Side.CLIENT,
                legal_if=f"process {first.process} had stopped believing by {ms(second.a)}",
            ),
        )

    def stale_write(self, invoke: Line, event: Line, token: int, than: tuple[int, int]) -> None:
        floor, floor_by = than  # the greatest token accepted before, and the event that says so
        self.add(
            invoke.key,
            (STORE,),
            lambda: service(
                "stale-write-accepted",
                invoke.key,
                f"process {event.process}: its write with token {token} (asked at "
                f"{ms(invoke.time)}) was accepted although one with token {floor} had been",
                [floor_by, event.index],
                side=Side.RESOURCE,
                legal_if=f"the write with token {token} had been refused",
            ),
        )

    def _no_token_given(self, hold: Hold) -> None:
        self.add(
            hold.lock.key,
            (FENCED, LEASE),
            lambda: service(
                "grant-without-token",
                hold.lock.key,
                f"process {hold.process} was granted the lock by {ms(hold.a)} without a fencing "
                "token",
                [hold.event],
                legal_if="the grant had carried an integer token",
            ),
        )

    def verdicts(self, online: Online) -> dict[str, Verdict]:
        """One verdict per model; what was found on keys put aside is left out."""
        tokens = online.waits.grants - self.tokenless_count
        if tokens:
            for hold in self.tokenless_holds:
                self._no_token_given(hold)
        found = {name: Verdict(model=name) for name in (*LOCKS, BELIEF, STORE, "fairness")}
        for (model, key), anomalies in self.found.items():
            if key not in online.aside:
                for anomaly in anomalies:
                    found[model].add(anomaly)
                found[model].count += self.counts[model, key] - len(anomalies)
        for key, why in online.aside.items():
            names = [BELIEF, *LOCKS] if key in online.locks else []
            names += [STORE] if key in online.resources else []
            for name in names:
                found[name].doubt(why, key)
        waits = online.waits.figures(online.workers)
        found["fairness"].stats.update(waits)
        found[FENCED].stats.update(tokens=tokens, unknown_grants=self.grants_unknown)
        found[BELIEF].stats["overlap_ms_max"] = self.overlap_ns_max / NS_PER_MS
        found[STORE].stats.update(accepted=self.accepted, stale_refused=self.stale_refused)
        shown = {
            **dict.fromkeys((MUTEX, LEASE, BELIEF, "fairness"), bool(online.waits.grants)),
            FENCED: bool(tokens),
            STORE: bool(self.accepted),
        }
        for name, verdict in found.items():
            verdict.anomalies.sort(key=lambda anomaly: max(anomaly.ops, default=0))
            verdict.keys = len(online.resources if name == STORE else online.locks)
            verdict.stats["events"] = online.events
            if verdict.valid is Valid.TRUE and not shown[name]:
                verdict.valid, verdict.why = Valid.UNKNOWN, "nothing of this kind happened"
        return found
