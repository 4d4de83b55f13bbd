import threading

import redis

TTL = 10
r = redis.Redis()


def work(stop: threading.Event):
    lock = r.lock("work", timeout=TTL)
    while not stop.wait(TTL / 3):
        lock.reacquire()
