import logging

import redis

log = logging.getLogger(__name__)
r = redis.Redis()


def lead(stop):
    lock = r.lock("leader", timeout=30)
    with lock:
        while not stop.wait(5):
            try:
                lock.reacquire()  # expect: A-LEASE-6 lease
            except redis.exceptions.LockError:
                log.warning("not renewed")
