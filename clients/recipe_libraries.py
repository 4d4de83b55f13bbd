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
) -> Library:
    """A Library whose code is the recipe class at ``recipe`` ("module:Class")."""
    powers = [("renew", renewable), ("believes", True), ("fenced", bool(fencing))]
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
