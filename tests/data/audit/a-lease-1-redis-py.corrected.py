import redis

cache = redis.Redis.from_url("redis://127.0.0.1")


def index():
    with cache.lock("index", timeout=120):
        print("indexing")
