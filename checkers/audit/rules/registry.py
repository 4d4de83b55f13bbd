"""Audit rules by id.  A new one: a function in the file of its letter, one line here, its samples.

    RULES.load("A-ID-1").findings(facts)

Samples are tests/data/audit/<id>-*.faulty.* and their corrected twins.
"""

from __future__ import annotations

from harness.core.registry import Registry

RULES = Registry(
    "audit_rule",
    {
        "A-CFG-1": "checkers.audit.rules.config:EVICTION",
        "A-CFG-3": "checkers.audit.rules.config:POOLER",
        "A-FENCE-1": "checkers.audit.rules.fencing:UNFENCED_WRITE",
        "A-ID-1": "checkers.audit.rules.identity:UNGUARDED",
        "A-ID-2": "checkers.audit.rules.identity:GUESSABLE_TOKEN",
        "A-ID-3": "checkers.audit.rules.identity:SHARED_TOKEN",
        "A-ID-6": "checkers.audit.rules.identity:UNUSED_ACQUIRE",
        "A-LEASE-1": "checkers.audit.rules.lease:NO_LEASE",
        "A-LEASE-2": "checkers.audit.rules.lease:SECOND_COMMAND",
        "A-LEASE-3": "checkers.audit.rules.lease:UNIT",
        "A-LEASE-4": "checkers.audit.rules.lease:TIMING",
        "A-LEASE-6": "checkers.audit.rules.lease:UNUSED_RENEWAL",
        "A-LEASE-7": "checkers.audit.rules.lease:CREATING_RENEWAL",
        "A-LOG-1": "checkers.audit.rules.logs:OVERLAP",
        "A-LOG-2": "checkers.audit.rules.logs:AFTER_LOSS",
        "A-LOG-3": "checkers.audit.rules.logs:STUCK",
        "A-LOG-4": "checkers.audit.rules.logs:IN_STEP",
        "A-LOG-5": "checkers.audit.rules.logs:FOREIGN_RELEASE",
        "A-LOG-6": "checkers.audit.rules.logs:RENEWAL_GAP",
        "A-LOG-7": "checkers.audit.rules.logs:CLOCK_BACK",
        "A-LOG-8": "checkers.audit.rules.logs:LEADER_CHANGES",
        "A-REL-1": "checkers.audit.rules.release:NO_FINALLY",
        "A-REL-2": "checkers.audit.rules.release:UNUSED_UNLOCK",
        "A-REL-4": "checkers.audit.rules.release:SILENCED_RELEASE",
        "A-REL-5": "checkers.audit.rules.release:POOLED_SESSION",
        "A-REL-7": "checkers.audit.rules.release:PLANNED_LOCK",
        "A-RUN-1": "checkers.audit.rules.run:GRANTED_TWICE",
        "A-RUN-2": "checkers.audit.rules.run:BELIEVED_TWICE",
        "A-RUN-3": "checkers.audit.rules.run:STALE_WRITE",
        "A-RUN-4": "checkers.audit.rules.run:HARMED",
        "A-RUN-5": "checkers.audit.rules.run:DISHONEST",
        "A-RUN-6": "checkers.audit.rules.run:NO_RECOVERY",
        "A-RUN-7": "checkers.audit.rules.run:UNFAIR",
    },
)
