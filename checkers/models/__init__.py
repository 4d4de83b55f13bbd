"""Models: what a lock, a semaphore, a register may do.  ``MODELS`` names them.

    model = make("semaphore", k=3)
    model.step(model.init, model.prepare(interval))

A new model is one file here, one line below and one test.
"""

from __future__ import annotations

import inspect
from typing import Any

from checkers.models.base import Model, PowerSet, determined
from harness.core.errors import UserError
from harness.core.registry import Registry

MODELS = Registry(
    "model",
    {
        "mutex": "checkers.models.mutex:Mutex",
        "reentrant": "checkers.models.mutex:Reentrant",
        "fenced": "checkers.models.mutex:Fenced",
        "semaphore": "checkers.models.shared:Semaphore",
        "rwlock": "checkers.models.shared:RwLock",
        "cas": "checkers.models.register:Cas",
        "register": "checkers.models.register:Cas",
        "kv": "checkers.models.register:Kv",
        "store": "checkers.models.register:Store",
        "lease": "checkers.models.lease:Lease",
        "jepsen-mutex": "checkers.models.jepsen:JepsenMutex",
    },
)


def make(name: str, **options: Any) -> Model:
    """The model ``name`` with ``options``; UserError for an unknown name or option."""
    factory = MODELS.load(name)
    known = [
        parameter.name
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.kind == inspect.Parameter.KEYWORD_ONLY
    ]
    wrong = sorted(set(options) - set(known))
    if wrong:
        raise UserError(
            f"model {name!r} has no option {wrong[0]!r} (it has: {', '.join(known) or 'none'})"
        )
    model: Model = factory(**options)
    return model


__all__ = ["MODELS", "Model", "PowerSet", "determined", "make"]
