"""Whether a name says that something is a lock.

    says_lock("acquireLock"), says_lock("blocklist")     # True, False

Traps: SET NX is also how people drop duplicates and count rates, so names decide; ``block``,
``clock`` and ``unblock`` are not about locks.
"""

from __future__ import annotations

import re

_LOCKISH = re.compile(
    r"Lock|Mutex|Lease|Leader|Semaphore|(un|re|_)lock"
    r"|(?<![A-Za-z])(d?lock|mutex|lease|leader|lck|semaphore|D?LOCK|MUTEX|LEASE|LEADER)"
)
_NOT_LOCKISH = re.compile(r"b?lock(ed)?_?(list|out|chain)|unblock|block", re.I)
_ONCE = re.compile(r"idempoten|dedup|duplicate|already_?(?:done|seen)", re.I)


def says_once(text: str) -> bool:
    """Whether a text names a mark that something was done: kept on purpose, and nobody's to own."""
    return bool(_ONCE.search(text))


def says_lock(text: str) -> bool:
    """Whether a text names a lock, a lease, a leader or a mutex."""
    return bool(_LOCKISH.search(_NOT_LOCKISH.sub("", text)))
