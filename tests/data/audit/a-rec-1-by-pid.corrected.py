import redis

r = redis.Redis()


def work(name: str) -> None:
    with r.lock(f"lock:{name}", timeout=10):  # a dead holder's lease ends by itself
        print(name)
