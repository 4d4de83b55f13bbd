"""kazoo's locks with several holders: ReadLock and WriteLock, and Semaphore.

    python -u clients/worker/main.py --adapter clients/adapters/kazoo_shared.py \
        --adapter-arg recipe=rw

``rw``: readers and writers queue with ephemeral sequential nodes in one folder; a reader waits for
writers before it, a writer for everybody.  ``semaphore``: each permit is an ephemeral node, and who
wants one takes an ordinary kazoo Lock first, in which it waits until there is room.

Facts, read in kazoo 2.11's ``recipe/lock.py``, besides those in kazoo_lock.py:

- The semaphore's folder keeps k as its data and refuses another k (ValueError).
- ``Semaphore.release`` is True also if its node is gone; the loss of the session tells.
- Only the head of the queue for a semaphore watches its permits; the others wait for that lock, so
  a head whose session hangs holds up everybody until it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clients.adapters.kazoo_lock import ROOT, KazooLock

if TYPE_CHECKING:
    from clients.worker.adapter import Grant

RECIPES = ("rw", "semaphore")


class KazooRw(KazooLock):
    """``acquire`` is a WriteLock, ``acquire_read`` a ReadLock."""

    library = "kazoo-rw"

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        return self.take(self.client.WriteLock(f"{ROOT}/{key}", self.name), timeout_ms)

    def acquire_read(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        return self.take(self.client.ReadLock(f"{ROOT}/{key}", self.name), timeout_ms)


class Permit:
    """A Semaphore with the name of its node, as locks have it."""

    def __init__(self, semaphore: Any) -> None:
        self.acquire, self.release = semaphore.acquire, semaphore.release
        self.node = semaphore.create_path.rpartition("/")[2]


class KazooSemaphore(KazooLock):
    """``acquire_permit`` takes one of k; ``acquire`` is the semaphore of one."""

    library = "kazoo-semaphore"

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        return self.acquire_permit(key, 1, ttl_ms, timeout_ms)

    def acquire_permit(self, key: str, k: int, ttl_ms: int | None, timeout_ms: int) -> Grant:
        semaphore = self.client.Semaphore(f"{ROOT}/{key}", self.name, max_leases=k)
        return self.take(Permit(semaphore), timeout_ms)


def make(recipe: str) -> KazooLock:
    """The client for ``recipe``."""
    if recipe not in RECIPES:
        raise ValueError(f"recipe is {recipe!r}; it must be one of {', '.join(RECIPES)}")
    return KazooRw() if recipe == "rw" else KazooSemaphore()


ADAPTER = make
