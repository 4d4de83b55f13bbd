import uuid

from redis import Redis

GIVE_BACK = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end"


class Lease:
    def __init__(self, client: Redis, name: str) -> None:
        self.client = client
        self.key = "lease:" + name
        self.token = None

    def take(self) -> bool:
        self.token = str(uuid.uuid4())
        return bool(self.client.set(self.key, self.token, nx=True, ex=20))

    def give_back(self) -> None:
        if not self.client.eval(GIVE_BACK, 1, self.key, self.token):
            raise RuntimeError("the lease was over")
