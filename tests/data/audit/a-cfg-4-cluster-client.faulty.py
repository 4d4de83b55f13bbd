from redis.cluster import RedisCluster

r = RedisCluster(host="locks", read_from_replicas=True)  # expect: A-CFG-4 recovery


def work() -> None:
    with r.lock("lock:a", timeout=10):
        print("working")
