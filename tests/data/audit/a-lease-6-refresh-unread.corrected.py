import pyetcd

client = pyetcd.client()


def lead(stop):
    lock = client.lock("leader", ttl=30)
    if not lock.acquire():
        return
    try:
        while not stop.wait(5):
            if lock.refresh()[0].TTL == 0:
                raise RuntimeError("the lease is over")
    finally:
        lock.release()
