import redis

r = redis.Redis()


def move(item):
    lock = r.lock("lock:move", timeout=60)
    lock.acquire()  # expect: A-REL-1 release_retry
    carry(item)
    lock.release()


def carry(item):
    print(item)
