import threading

import redis

TTL = 10
r = redis.Redis()


def renew(lock, stop: threading.Event):
    while not stop.wait(8):
        lock.reacquire()


def work(stop: threading.Event):
    lock = r.lock("work", timeout=TTL)
    while not stop.wait(8):
        lock.reacquire()  # expect: A-LEASE-4 lease
