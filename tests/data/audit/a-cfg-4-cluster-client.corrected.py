from redis.cluster import RedisCluster

r = RedisCluster(host="locks")


def work() -> None:
    with r.lock("lock:a", timeout=10):
        print("working")
