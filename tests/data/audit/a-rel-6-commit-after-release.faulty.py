import redis
from django.db import transaction

r = redis.Redis()


def book(seat) -> None:
    with transaction.atomic():
        with r.lock("lock:seats", timeout=10):  # expect: A-REL-6 release_retry
            seat.save()
