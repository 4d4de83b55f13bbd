"""valkey-py's Lock: ``valkey.Valkey(...).lock(name, timeout=ttl)``, the fork of redis-py's.

The same code with other names, released on its own: what redis_py.py and redis_common.py say of
redis-py holds, and is checked here for the fork.
"""

from __future__ import annotations

import sys

import valkey
import valkey.asyncio
import valkey.backoff
import valkey.connection
import valkey.exceptions
import valkey.retry  # noqa: F401 - loaded for its name below

# The adapter of redis-py is written against names that the fork has kept.
for _name in ("", ".connection", ".exceptions", ".backoff", ".retry"):
    sys.modules.setdefault(f"redis{_name}", sys.modules[f"valkey{_name}"])

from clients.adapters.redis_py import RedisPy  # noqa: E402 - the names had to be there first


class ValkeyPy(RedisPy):
    """The synchronous adapter over the fork."""

    library = "valkey-py"
    distributions = ("valkey",)


ADAPTER = ValkeyPy
