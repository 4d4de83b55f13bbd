import redis

r = redis.Redis()


def report(day: str) -> None:
    if not r.get(day):
        with r.lock(f"lock:{day}", timeout=60):
            r.set(day, "made")  # expect: A-REC-3 recovery
