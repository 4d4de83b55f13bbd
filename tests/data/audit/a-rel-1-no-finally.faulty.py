from kazoo.client import KazooClient

zk = KazooClient(hosts="127.0.0.1:2181")


def move(item):
    lock = zk.Lock("/locks/move", "mover")
    lock.acquire()  # expect: A-REL-1 release_retry
    carry(item)
    lock.release()


def carry(item):
    print(item)
