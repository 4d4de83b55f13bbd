import redis


class Guard:
    def __init__(self, r: redis.Redis) -> None:
        self.lock = r.lock("lock:a", timeout=10)
        self.held = False

    def leave(self) -> None:
        self.lock.release()
        self.held = False
