import logging

from kazoo.client import KazooClient

client = KazooClient()


@client.add_listener
def watch(state: str) -> None:  # expect: A-FENCE-3 fencing line 9
    if state == "LOST":
        logging.error("session lost")


def work(step) -> None:
    with client.Lock("/job", "me"):
        step()
