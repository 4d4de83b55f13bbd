import pyetcd

client = pyetcd.client()


def lead(stop):
    lock = client.lock("leader", ttl=30)
    if not lock.acquire():
        return
    try:
        while not stop.wait(5):
            lock.refresh()  # expect: A-LEASE-6 lease
    finally:
        lock.release()
