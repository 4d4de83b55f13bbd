"""Faults by name.  A new one: one file beside this, one line here, its data in docs.

FAULTS.load("worker-pause")(...)      # the class; parameters are its keyword arguments
"""

from __future__ import annotations

from harness.core.registry import Registry

FAULTS = Registry(
    "fault",
    {
        "cut-reply": "nemesis.cut_reply:CutReply",
        "jam": "nemesis.jam:Jam",
        "latency": "nemesis.latency:Latency",
        "mute": "nemesis.mute:Mute",
        "node-kill": "nemesis.node_kill:NodeKill",
        "node-pause": "nemesis.node_pause:NodePause",
        "node-restart": "nemesis.node_restart:NodeRestart",
        "node-restart-empty": "nemesis.node_restart_empty:NodeRestartEmpty",
        "sever": "nemesis.sever:Sever",
        "worker-kill": "nemesis.worker_kill:WorkerKill",
        "worker-pause": "nemesis.worker_pause:WorkerPause",
    },
)
