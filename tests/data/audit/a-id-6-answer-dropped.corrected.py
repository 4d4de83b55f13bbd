from redis import Redis

r = Redis()


def report():
    lock = r.lock("report", timeout=30, blocking_timeout=5)
    if not lock.acquire():
        return
    try:
        print("report")
    finally:
        lock.release()
