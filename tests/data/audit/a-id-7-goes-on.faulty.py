import logging

import redis

r = redis.Redis()


def bill(customer: str) -> None:
    lock = r.lock(f"lock:{customer}", timeout=30)
    try:
        lock.acquire()
    except redis.ConnectionError:  # expect: A-ID-7 identity
        logging.warning("no lock, going on")
    charge(customer)


def charge(customer: str) -> None:
    print(customer)
