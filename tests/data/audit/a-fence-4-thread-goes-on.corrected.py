import threading

import redis

r = redis.Redis()


def export(job) -> None:
    with r.lock("lock:export", timeout=60):
        worker = threading.Thread(target=job)
        worker.start()
        worker.join()
