from redlock import Redlock

dlm = Redlock([{"host": "a"}, {"host": "b"}, {"host": "c"}])


def bill(order):
    lock = dlm.lock(f"bill:{order}", 10_000)
    if not lock:
        raise RuntimeError("somebody else bills this order")
    try:
        print("billing", order)
    finally:
        dlm.unlock(lock)
