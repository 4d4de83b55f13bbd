"""What the sync and the asyncio loop share: contexts, decisions, records, halts; no waiting.

``Waiting`` is the state of one request.  The loops call ``refused`` after each failed attempt; it
returns the time to sleep in ns or raises ``Escalated`` or ``Abandoned``.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from clients.retry.facts import DEFAULTS, Facts, Settings
from clients.retry.failures import Kind, kind_of
from clients.retry.gate import Asked
from clients.retry.halts import Board, Halts
from clients.retry.libraries import HELD, Failure
from clients.retry.model import Context, Decision, context_from
from clients.retry.record import Request, Sink, dead_letter, digest
from clients.retry.rules import decide as by_rules
from harness.core.clock import NS_PER_MS, NS_PER_S, Clock, MonotonicClock
from harness.core.rng import stream

LOG = logging.getLogger("lockhavoc.retry")
JITTER_SHARE = 0.1  # of a delay, added by the client; not in a queue, where order matters


class GivenUp(Exception):
    """The lock was not acquired; ``decision`` and ``context`` say why."""

    outcome = "abandoned"

    def __init__(self, why: str, decision: Decision, context: dict[str, Any]) -> None:
        super().__init__(why)
        self.decision = decision
        self.context = context


class Escalated(GivenUp):
    """Somebody has to look at it."""

    outcome = "escalated"


class Abandoned(GivenUp):
    """Waiting does not help."""


class Cancelled(Exception):
    """``cancel`` was called."""


def rules(context: Context, settings: Settings = DEFAULTS) -> Asked:
    """The default decider."""
    return Asked(by_rules(context, settings), "rules")


@dataclass
class Options:
    """What both loops take besides the request.  ``observe`` gives optional context fields.

    ``decide`` None: the rules, with ``settings``; a decider of your own brings its own settings,
    and the loop needs them here for the floor alone.
    """

    decide: Callable[[Context], Asked] | None = None
    decider: str = "rules"
    settings: Settings = DEFAULTS
    observe: Callable[[], Mapping[str, Any]] | None = None
    clock: Clock = field(default_factory=MonotonicClock)
    log: Sink | None = None
    escalations: Sink | None = None
    dead_letters: Sink | None = None
    halts: Board = field(default_factory=Halts)


class Waiting:
    """One request on its way; see the module."""

    def __init__(self, request: Request, options: Options) -> None:
        self.request = request
        self.options = options
        self.identity = uuid.uuid4().hex
        self.began_ns = options.clock.now()
        self.failures: list[Failure] = []
        self.history: list[dict[str, Any]] = []
        self._jitter = stream(request.seed, f"retry-loop/{request.requester_id}")
        self._kinds: set[Kind] = set()
        self.floor_ns = 0  # of the last sleep: no word may shorten it further

    def refused(self, failure: Failure) -> int:
        """How long to sleep (ns) after this failure; GivenUp if that was the end."""
        self.failures.append(failure)
        # By kind: messages carry addresses and numbers that differ from one to the next.
        self._kinds.add(kind_of(failure.reason, failure.code))
        context = self.context(failure)
        data = context.model_dump(mode="json", exclude_none=True)
        decide = self.options.decide
        asked = decide(context) if decide else rules(context, self.options.settings)
        decision = asked.decision
        if decision.deadlock_detected:
            members = Facts.of(context).cycle or {self.request.requester_id}
            try:
                self.options.halts.halt(members, decision.explanation)
            except Exception as error:  # this client stops in any case
                LOG.warning("%s were not halted: %s", sorted(members), error)
        sleep_ns = self._sleep_ns(decision)
        self.floor_ns = min(sleep_ns, Facts.of(context, self.options.settings).floor_ms * NS_PER_MS)
        record = {
            "kind": "decision", "lock": self.request.lock_name, "id": self.identity,
            "requester": self.request.requester_id, "attempt": len(self.failures),
            "at_ns": self.options.clock.now(), "began_ns": self.began_ns, "digest": digest(data),
            "context": data, "decider": self.options.decider, "source": asked.source,
            "notes": asked.notes, "decision": decision.as_dict(), "delay_ns": sleep_ns,
        }  # fmt: skip
        if self.options.settings != DEFAULTS:
            record["settings"] = asdict(self.options.settings)
        self._put(self.options.log, record)
        if decision.decision == "retry":
            self.history.append({"decision": "retry", "retry_after_ms": decision.retry_after_ms})
            return sleep_ns
        kind = Escalated if decision.decision == "escalate" else Abandoned
        why = decision.escalation_reason or decision.explanation
        if self.options.escalations and kind is Escalated:
            self._put(self.options.escalations, record | {"kind": "escalation"})
        letter = dead_letter(self.request, data, kind.outcome, why)
        self._put(self.options.dead_letters, letter)
        self.ended(kind.outcome)
        raise kind(why, decision, data)

    def check_halt(self) -> Failure | None:
        """A failure in place of an attempt, if this client is halted."""
        try:
            why = self.options.halts.why(self.request.requester_id)
        except Exception as error:  # see ``halts``: a board out of reach halts nobody
            LOG.warning("cannot see whether %r is halted: %s", self.request.requester_id, error)
            return None
        return None if why is None else Failure(f"deadlock detected: {why}")

    def context(self, failure: Failure) -> Context:
        """The context of the failure that was just noted."""
        request = self.request
        elapsed_ns = self.options.clock.now() - self.began_ns
        seen = dict(self.options.observe()) if self.options.observe else {}
        return context_from(
            {
                "lock_name": request.lock_name,
                "requester_id": request.requester_id,
                "current_holder_id": None,
                "lock_ttl_seconds": None if request.ttl_ms is None else request.ttl_ms / 1000,
                "elapsed_wait_seconds": elapsed_ns / NS_PER_S,
                "max_wait_budget_seconds": request.budget_ms / 1000,
                "fairness_policy": request.fairness,
                "failure_reason": failure.reason,
                "error_code": failure.code,
                "consecutive_failures": len(self.failures),
                "failure_reason_unchanged": len(self._kinds) == 1,
                "other_waiters_exist": False,
                "max_retries": request.max_retries,
                "constraints": list(request.constraints) or None,
                "priority": request.priority,
                "history": self.history[-1:] or None,
                "seed": request.seed,
            }
            | seen
        )

    def _sleep_ns(self, decision: Decision) -> int:
        delay_ns = (decision.retry_after_ms or 0) * NS_PER_MS
        if decision.backoff_strategy != "linear":
            delay_ns += int(delay_ns * JITTER_SHARE * self._jitter.random())
        end_ns = self.began_ns + self.request.budget_ms * NS_PER_MS
        return max(0, min(delay_ns, end_ns - self.options.clock.now()))

    def ended(self, outcome: str) -> None:
        """Notes how it ended: acquired, escalated, abandoned or cancelled."""
        now_ns = self.options.clock.now()
        self._put(
            self.options.log,
            {
                "kind": "outcome", "lock": self.request.lock_name, "id": self.identity,
                "requester": self.request.requester_id, "outcome": outcome, "at_ns": now_ns,
                "began_ns": self.began_ns, "attempts": len(self.failures) + (outcome == "acquired"),
            },
        )  # fmt: skip

    def _put(self, sink: Sink | None, record: dict[str, Any]) -> None:
        if sink is None:
            return
        try:
            sink(record)
        except Exception as error:  # a full disk or a lost server must not decide over the lock
            LOG.warning("%s of %r was not written: %s", record["kind"], self.request, error)


BUSY = Failure(HELD)
