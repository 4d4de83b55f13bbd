import redis

r = redis.Redis()


def first_time(event):
    return r.set(f"seen:{event}", "1", nx=True, ex=3600)


def blocklist(address):
    r.setnx(f"blocked:{address}", 1)
    r.expire(f"blocked:{address}", 60)
