import redis
from django.db import transaction

r = redis.Redis()


def book(seat) -> None:
    with r.lock("lock:seats", timeout=10):
        with transaction.atomic():
            seat.save()
