from redlock import Redlock

dlm = Redlock([{"host": "a"}, {"host": "b"}, {"host": "c"}])


def work():
    held = dlm.lock("work", 30_000)
    if not held:
        return
    try:
        print("working")
    finally:
        dlm.unlock(held)
