"""Recipes that are believed right, as libraries that can be put under test.

    LIBRARIES.load("recipe-redis").extra["recipe"]     # "clients.recipes.redis_lock:RedisLock"

Trap: only the harness imports this module; a worker's interpreter never does.
"""

from __future__ import annotations

from clients.libraries import ROOM, Library

ADAPTER = ROOM / "adapters" / "recipe.py"


def recipe_library(
    name: str,
    recipe: str,
    *,
    says: str,
    lease: str = "ttl",
    renewable: bool = True,
    fencing: str = "",
    canary: str = "",
    reads: bool = False,
    permits: bool = False,
) -> Library:
    """A Library whose code is the recipe class at ``recipe`` ("module:Class")."""
    powers = [
        ("renew", renewable),
        ("believes", True),
        ("fenced", bool(fencing)),
        ("read", reads),
        ("permits", permits),
    ]
    return Library(
        name=name,
        adapter=ADAPTER,
        requirements=ROOM / "requirements" / "redis-py.txt",
        imports=("redis",),
        backends=("redis-single", "valkey-single", "sim"),
        args={"recipe": recipe},
        lease="none" if lease == "none" else "ttl",
        powers=tuple(power for power, has in powers if has),
        fencing=fencing,
        canary=canary,
        says=says,
        extra={"recipe": recipe},
    )


REDIS = recipe_library(
    "recipe-redis",
    "clients.recipes.redis_lock:RedisLock",
    says="the single-server Redis lock as it should be: one-command grant, compare-and-delete",
)
REDIS_FENCED = recipe_library(
    "recipe-redis-fenced",
    "clients.recipes.redis_lock:FencedRedisLock",
    fencing="INCR of a counter per lock, in the script that grants",
    says="the same lock; each grant carries a token that grows",
)
REDIS_RW = recipe_library(
    "recipe-redis-rw",
    "clients.recipes.redis_rw:RedisRwLock",
    reads=True,
    says="a read/write lock: a writer alone or readers with a lease each, waiting writers first",
)
REDIS_SEMAPHORE = recipe_library(
    "recipe-redis-semaphore",
    "clients.recipes.redis_semaphore:RedisSemaphore",
    permits=True,
    says="k permits with a lease each, by the server's clock",
)
