"""Workloads by name.  A new one: one file beside this, one line here, its test.

kind = WORKLOADS.load("multi")()
generator = kind.leaf(spec, kind.settle({"locks": 3}), worker=0, until_ns=10**10)
"""

from __future__ import annotations

from harness.core.registry import Registry

WORKLOADS = Registry(
    "workload",
    {
        "cancel": "harness.workloads.cancel:Cancel",
        "churn": "harness.workloads.churn:Churn",
        "crash": "harness.workloads.crash:Crashing",
        "elect": "harness.workloads.elect:Elect",
        "job": "harness.workloads.job:Job",
        "longhold": "harness.workloads.longhold:LongHold",
        "multi": "harness.workloads.multi:Multi",
        "mutex": "harness.workloads.mutex:Mutex",
        "nonblock": "harness.workloads.nonblock:NonBlock",
        "pool": "harness.workloads.pool:Pool",
        "renew": "harness.workloads.renew:Renew",
        "rw": "harness.workloads.rw:ReadWrite",
        "semaphore": "harness.workloads.semaphore:Semaphore",
        "shared": "harness.workloads.shared:Shared",
        "update": "harness.workloads.update:Update",
    },
)
