import uuid

import redis

r = redis.Redis()
STORE = "UPDATE rows SET text = %s, fence = %s WHERE id = %s AND fence < %s"


def store(db, row: int, text: str) -> None:
    token = uuid.uuid4().hex
    with r.lock("lock:rows", timeout=10):
        db.execute(STORE, (text, token, row, token))  # expect: A-FENCE-2 fencing
