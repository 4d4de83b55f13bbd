import logging

import redis

log = logging.getLogger(__name__)
r = redis.Redis()


def lead(stop):
    lock = r.lock("leader", timeout=30)
    with lock:
        while not stop.wait(5):
            try:
                lock.reacquire()
            except redis.exceptions.LockError:
                log.warning("not renewed")
                return
