import os

import redis

r = redis.Redis()


def steal_dead_lock(name: str) -> None:
    pid = int(r.get(f"lock:{name}:pid") or 0)
    try:
        os.kill(pid, 0)  # expect: A-REC-1 recovery
    except ProcessLookupError:
        r.delete(f"lock:{name}")


def work(name: str) -> None:
    with r.lock(f"lock:{name}", timeout=10):
        print(name)
