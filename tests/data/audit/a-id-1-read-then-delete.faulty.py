import uuid

from redis import Redis


class Lease:
    def __init__(self, client: Redis, name: str) -> None:
        self.client = client
        self.key = "lease:" + name
        self.token = None

    def take(self) -> bool:
        self.token = str(uuid.uuid4())
        return bool(self.client.set(self.key, self.token, nx=True, ex=20))

    def give_back(self) -> None:
        if self.client.get(self.key) == self.token:
            self.client.delete(self.key)  # expect: A-ID-1 release_retry
