"""mutex: critical sections under one lock; acquire, work, write to the resource, release, again."""

from __future__ import annotations

from harness.workloads.base import Kind


class Mutex(Kind):
    """Critical sections as the scenario's times say."""

    kind = "mutex"
    says = "critical sections: acquire, work, write to the resource, release, again"
    shows = "two holders at a time, late writes, releases by others"
