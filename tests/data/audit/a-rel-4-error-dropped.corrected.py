import logging

import redis
from redis.exceptions import LockError

r = redis.Redis()
log = logging.getLogger(__name__)


def bill():
    lock = r.lock("bill", timeout=30)
    if not lock.acquire(blocking=False):
        return
    try:
        print("billing")
    finally:
        try:
            lock.release()
        except LockError:
            log.exception("the lock was lost while billing")
            raise
