"""What to ask in production, by kind of failure: whether it happens, and whether the fix holds.

    queries("K01", "redis")      # (tool, query, what its answer means)

Names of metrics are those of the usual exporters; names of your own log fields go into the log
queries.  Every query only reads.
"""

from __future__ import annotations

Query = tuple[str, str, str]

_WHO = {
    "redis": ("redis-cli", "GET lock:NAME  then  PTTL lock:NAME",
              "the owner's token and what is left of its lease; -1 is a lock without a lease"),
    "etcd": ("etcdctl", "etcdctl get --prefix locks/ -w json",
             "keys in the order of create_revision: the first holds, its lease is in it"),
    "zookeeper": ("zkCli", "ls -s /locks/NAME  then  stat of the first node",
                  "the lowest sequence holds; ephemeralOwner is its session"),
    "postgres": ("SQL", "SELECT l.classid, l.objid, l.granted, a.pid, a.state, a.client_addr, "
                 "now() - a.state_change AS since FROM pg_locks l JOIN pg_stat_activity a USING "
                 "(pid) WHERE l.locktype = 'advisory' ORDER BY since DESC",
                 "who holds and who waits, and for how long; idle holders are suspicious"),
}  # fmt: skip
_LOGS = {
    "lost": ("LogQL", '{app="APP"} |~ "(?i)lock.*(lost|expired|not owned)"',
             "each line is a holder that learned too late, or just in time"),
    "audit": ("shell", "lockhavoc audit logs/ --format json",
              "A-LOG rules: overlap, work after a lease, foreign release, late renewal"),
}  # fmt: skip
_BY_KIND: dict[str, tuple[Query, ...]] = {
    "K01": (_LOGS["audit"],
            ("PromQL", 'increase(redis_commands_total{cmd=~"del|unlink"}[5m])',
             "plain deletes beside evalsha: after the fix, locks are freed by evalsha alone")),
    "K05": (("redis-cli", "redis-cli --scan --pattern 'lock:*' | xargs -n1 redis-cli PTTL",
             "no answer may be -1: that lock has no lease"),),
    "K07": (("redis-cli", "PTTL lock:NAME, each second during a long job",
             "a saw that never falls below a third of the lease"),),
    "K08": (_LOGS["lost"], _LOGS["audit"]),
    "K10": (("PromQL", "abs(node_timex_offset_seconds) > 0.1", "clocks that are off"),
            ("PromQL", "changes(node_boot_time_seconds[1h]) > 0", "a clock that was set")),
    "K11": (("SQL", "SELECT count(*) FROM pg_stat_user_tables WHERE n_tup_upd > 0",
             "compare with the count of refused writes that your resource logs"),),
    "K12": (("redis-cli", "INFO replication; INFO persistence",
             "role, lag of replicas, aof_enabled; master_repl_offset apart means loss"),
            ("PromQL", "increase(etcd_server_leader_changes_seen_total[1h])", "leader changes")),
    "K13": (("PromQL", "increase(redis_evicted_keys_total[1h]) > 0",
             "a store of locks must evict nothing"),
            ("redis-cli", "CONFIG GET maxmemory-policy", "noeviction")),
    "K14": (_WHO["postgres"],),
    "K15": (("SQL", "SELECT pid, now() - xact_start AS open FROM pg_stat_activity WHERE state = "
             "'idle in transaction' ORDER BY open DESC", "transactions that outlive their lock"),),
    "K17": (("redis-cli", "redis-cli --scan --pattern 'lock:*'",
             "with all clients stopped for one lease, nothing is left"),
            ("etcdctl", "etcdctl lease list", "no lease without a client")),
    "K18": (("PromQL", "max_over_time(lock_wait_seconds_max[1h])",
             "time to the next grant stays below the bound you state"),),
    "K22": (("PromQL", "rate(redis_commands_processed_total[1m])",
             "no peaks at a steady distance after an outage"),
            ("PromQL", "increase(etcd_server_leader_changes_seen_total[10m])", "at most one")),
    "K23": (("LogQL", '{app="APP"} |~ "(?i)(could not acquire|lock timeout|lock busy)" | logfmt '
             "| line_format \"{{.lock}} {{.error}}\"",
             "busy, lost, unreachable and refused can be told apart"),),
    "K24": (("SQL", "SELECT blocked.pid, blocking.pid, blocked.query FROM pg_stat_activity blocked "
             "JOIN pg_stat_activity blocking ON blocking.pid = ANY(pg_blocking_pids(blocked.pid))",
             "no circle"),),
}  # fmt: skip


def queries(kind: str, family: str) -> list[Query]:
    """Queries for a kind of failure: first who holds the lock, then what is special to the kind."""
    found = [_WHO[family]] if family in _WHO else []
    for query in _BY_KIND.get(kind, (_LOGS["audit"],)):
        if query not in found:
            found.append(query)
    return found
