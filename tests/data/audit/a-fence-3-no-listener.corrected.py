import threading

from kazoo.client import KazooClient

gone = threading.Event()


def watch(state: str) -> None:
    if state != "CONNECTED":
        gone.set()


def lead(hosts: str, step) -> None:
    client = KazooClient(hosts=hosts)
    client.add_listener(watch)
    client.start()
    with client.Lock("/leader", "me"):
        while not gone.is_set():
            step()
