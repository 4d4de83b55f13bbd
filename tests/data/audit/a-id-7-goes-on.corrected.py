import logging

import redis

r = redis.Redis()


def bill(customer: str) -> None:
    try:
        with r.lock(f"lock:{customer}", timeout=30):
            charge(customer)
    except redis.ConnectionError:
        logging.warning("no lock, nothing was billed")
        raise


def charge(customer: str) -> None:
    print(customer)
