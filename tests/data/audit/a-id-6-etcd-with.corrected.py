import etcd3

client = etcd3.client()


def rotate():
    lock = client.lock("rotate", ttl=30)
    if not lock.acquire(timeout=5):
        raise TimeoutError("somebody else rotates")
    try:
        print("rotating")
    finally:
        lock.release()
