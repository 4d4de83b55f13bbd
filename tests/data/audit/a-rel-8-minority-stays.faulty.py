import uuid

import redis

SERVERS = [redis.Redis(port=p) for p in (6379, 6380, 6381)]


def take_lock(name: str) -> str | None:
    token = uuid.uuid4().hex
    got = []
    for server in SERVERS:
        if server.set(name, token, nx=True, px=10_000):  # expect: A-REL-8 release_retry
            got.append(server)
    return token if len(got) > len(SERVERS) // 2 else None
