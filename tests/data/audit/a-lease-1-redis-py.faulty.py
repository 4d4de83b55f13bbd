import redis

cache = redis.Redis.from_url("redis://127.0.0.1")


def index():
    with cache.lock("index"):  # expect: A-LEASE-1 lease
        print("indexing")
