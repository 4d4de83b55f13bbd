import redis_lock
from redis import StrictRedis

conn = StrictRedis()


def nightly():
    with redis_lock.Lock(conn, "nightly", expire=60, auto_renewal=True):
        print("nightly")
