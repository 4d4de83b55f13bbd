import redis

r = redis.Redis()


def book(c, seat: int) -> None:
    with r.lock("lock:seats", timeout=10):
        c.execute("UPDATE seats SET taken = true, version = version + 1 WHERE id = %s", (seat,))
        c.commit()
