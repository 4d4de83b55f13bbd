import redis

r = redis.Redis()


def pay(db, order):
    fence = r.incr("order:fence")
    with r.lock(f"order:{order}", timeout=30):
        changed = db.execute(
            "UPDATE orders SET paid = true, fence = %s WHERE id = %s AND fence < %s",
            (fence, order, fence),
        )
        if changed.rowcount != 1:
            raise RuntimeError("somebody newer was here")
