import redis

r = redis.Redis()
STORE = "UPDATE rows SET text = %s, fence = %s WHERE id = %s AND fence < %s"


def store(db, row: int, text: str) -> None:
    with r.lock("lock:rows", timeout=10):
        token = db.execute("SELECT nextval('fence')").fetchone()[0]
        db.execute(STORE, (text, token, row, token))
