from redis import Redis

r = Redis()


def report():
    lock = r.lock("report", timeout=30, blocking_timeout=5)
    lock.acquire()  # expect: A-ID-6 identity
    try:
        print("report")
    finally:
        lock.release()
