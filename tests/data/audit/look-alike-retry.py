import time

import requests


def fetch(url: str) -> bytes:
    while True:
        answer = requests.get(url, timeout=5)
        if answer.ok:
            return answer.content
        time.sleep(1)
