"""Faults by name.  A new one: one file beside this, one line here, its data in docs.

FAULTS.load("worker-pause")(...)      # the class; parameters are its keyword arguments
"""

from __future__ import annotations

from harness.core.registry import Registry

FAULTS = Registry(
    "fault",
    {
        "backend-kill": "nemesis.backend_kill:BackendKill",
        "blackhole": "nemesis.blackhole:Blackhole",
        "clock-jump": "nemesis.clock_jump:ClockJump",
        "clock-skew": "nemesis.clock_skew:ClockSkew",
        "cut-reply": "nemesis.cut_reply:CutReply",
        "deafen": "nemesis.deafen:Deafen",
        "failover": "nemesis.failover:Failover",
        "flush": "nemesis.flush:Flush",
        "jam": "nemesis.jam:Jam",
        "latency": "nemesis.latency:Latency",
        "memory-pressure": "nemesis.memory_pressure:MemoryPressure",
        "mute": "nemesis.mute:Mute",
        "node-kill": "nemesis.node_kill:NodeKill",
        "node-pause": "nemesis.node_pause:NodePause",
        "node-restart": "nemesis.node_restart:NodeRestart",
        "node-restart-empty": "nemesis.node_restart_empty:NodeRestartEmpty",
        "partition": "nemesis.partition:Partition",
        "read-only": "nemesis.read_only:ReadOnly",
        "session-expire": "nemesis.session_expire:SessionExpire",
        "sever": "nemesis.sever:Sever",
        "slow": "nemesis.slow:Slow",
        "store-full": "nemesis.store_full:StoreFull",
        "worker-block-loop": "nemesis.worker_block_loop:WorkerBlockLoop",
        "worker-clock-jump": "nemesis.worker_clock_jump:WorkerClockJump",
        "worker-clock-skew": "nemesis.worker_clock_skew:WorkerClockSkew",
        "worker-kill": "nemesis.worker_kill:WorkerKill",
        "worker-pause": "nemesis.worker_pause:WorkerPause",
        "worker-starve": "nemesis.worker_starve:WorkerStarve",
    },
)
