import uuid

RELEASE = """
if redis.call("get", KEYS[1]) == ARGV[1] then
    return redis.call("del", KEYS[1])
end
return 0
"""


class RedisLock:
    def __init__(self, client, key, ttl=30):
        self.client = client
        self.key = key
        self.ttl = ttl

    def __enter__(self):
        self.token = uuid.uuid4().hex
        if not self.client.set(self.key, self.token, nx=True, ex=self.ttl):
            raise RuntimeError("somebody else holds it")
        return self

    def __exit__(self, *error):
        release = self.client.register_script(RELEASE)
        release(keys=[self.key], args=[self.token])
