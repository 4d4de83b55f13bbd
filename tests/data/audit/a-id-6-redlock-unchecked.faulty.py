from redlock import Redlock

dlm = Redlock([{"host": "a"}, {"host": "b"}, {"host": "c"}])


def bill(order):
    lock = dlm.lock(f"bill:{order}", 10_000)  # expect: A-ID-6 identity
    try:
        print("billing", order)
    finally:
        dlm.unlock(lock)
