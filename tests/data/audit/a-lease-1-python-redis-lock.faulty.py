import redis_lock
from redis import StrictRedis

conn = StrictRedis()


def nightly():
    with redis_lock.Lock(conn, "nightly"):  # expect: A-LEASE-1 lease
        print("nightly")
