from kazoo.client import KazooClient


def lead(hosts: str, step) -> None:
    client = KazooClient(hosts=hosts)
    client.start()
    with client.Lock("/leader", "me"):
        while True:  # expect: A-FENCE-3 fencing
            step()
