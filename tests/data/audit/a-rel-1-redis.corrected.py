import redis

r = redis.Redis()


def move(item):
    lock = r.lock("lock:move", timeout=60)
    lock.acquire()
    try:
        carry(item)
    finally:
        lock.release()


def carry(item):
    print(item)
