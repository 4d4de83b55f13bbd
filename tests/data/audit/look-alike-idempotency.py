import redis


class IdempotencyGuard:
    def __init__(self, client: redis.Redis, owner: str) -> None:
        self.client, self.owner = client, owner

    def begin(self, key: str) -> bool:
        return bool(self.client.set(f"idempotency:{key}", f"pending:{self.owner}", nx=True, ex=60))

    def clear(self, key: str) -> None:
        self.client.delete(f"idempotency:{key}")  # on purpose: it is to run again
