"""The canaries as libraries that can be put under test: one constant each.

    LIBRARIES.load("broken-no-ttl").canary      # "liveness": the checker that must catch it
    canary("broken-no-ttl").faults              # the faults under which it shows

Trap: only the harness imports this module; a worker's interpreter never does.
"""

from __future__ import annotations

import importlib

from clients.broken import (
    constant_token,
    no_ttl,
    read_then_delete,
    release_without_check,
    renewal_recreates,
    rw_readers_counted,
    rw_writer_among_readers,
    semaphore_counted,
    semaphore_one_too_many,
    set_then_expire,
    token_reused,
)
from clients.broken.canary import Canary
from clients.libraries import Library
from clients.recipe_libraries import recipe_library
from clients.recipes.base import Recipe


def _library(name: str, recipe: type[Recipe], canary: Canary) -> Library:
    return recipe_library(
        name,
        f"{recipe.__module__}:{recipe.__name__}",
        lease=recipe.lease,
        renewable=recipe.renewable,
        fencing="a counter that does not do its work" if recipe.fencing else "",
        canary=canary.checker,
        reads=recipe.reads,
        permits=recipe.permits,
        says=f"{canary.kind}: {canary.says}",
    )


NO_TTL = _library("broken-no-ttl", no_ttl.NoTtl, no_ttl.CANARY)
SET_THEN_EXPIRE = _library(
    "broken-set-then-expire", set_then_expire.SetThenExpire, set_then_expire.CANARY
)
RELEASE_WITHOUT_CHECK = _library(
    "broken-release-without-check",
    release_without_check.ReleaseWithoutCheck,
    release_without_check.CANARY,
)
READ_THEN_DELETE = _library(
    "broken-read-then-delete", read_then_delete.ReadThenDelete, read_then_delete.CANARY
)
RENEWAL_RECREATES = _library(
    "broken-renewal-recreates", renewal_recreates.RenewalRecreates, renewal_recreates.CANARY
)
CONSTANT_TOKEN = _library(
    "broken-constant-token", constant_token.ConstantToken, constant_token.CANARY
)
TOKEN_REUSED = _library("broken-token-reused", token_reused.TokenReused, token_reused.CANARY)
RW_WRITER_AMONG_READERS = _library(
    "broken-rw-writer-among-readers",
    rw_writer_among_readers.WriterAmongReaders,
    rw_writer_among_readers.CANARY,
)
RW_READERS_COUNTED = _library(
    "broken-rw-readers-counted", rw_readers_counted.ReadersCounted, rw_readers_counted.CANARY
)
SEMAPHORE_ONE_TOO_MANY = _library(
    "broken-semaphore-one-too-many",
    semaphore_one_too_many.OneTooMany,
    semaphore_one_too_many.CANARY,
)
SEMAPHORE_COUNTED = _library(
    "broken-semaphore-counted", semaphore_counted.Counted, semaphore_counted.CANARY
)


def canary(name: str) -> Canary:
    """What is known of the canary ``name``: its checker, workload, faults and resource."""
    from clients.registry import LIBRARIES

    module = LIBRARIES.load(name).extra["recipe"].partition(":")[0]
    found: Canary = importlib.import_module(module).CANARY
    return found
