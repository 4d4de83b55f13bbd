import uuid

import redis

SERVERS = [redis.Redis(port=p) for p in (6379, 6380, 6381)]
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end"


def take_lock(name: str) -> str | None:
    token = uuid.uuid4().hex
    got = []
    for server in SERVERS:
        if server.set(name, token, nx=True, px=10_000):
            got.append(server)
    if len(got) > len(SERVERS) // 2:
        return token
    for server in SERVERS:
        server.eval(RELEASE, 1, name, token)
    return None
