import redis

r = redis.Redis()


def work(handle) -> None:
    while True:  # a job queue: to wait for ever is what it is for
        _, job = r.blpop("jobs", 0)
        handle(job)
