import redis

r = redis.Redis()


def pay(db, order):
    with r.lock(f"order:{order}", timeout=30):
        # expect on line 9: A-FENCE-1 fencing
        db.execute("UPDATE orders SET paid = true WHERE id = %s", (order,))
