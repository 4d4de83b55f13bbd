"""Whether a name says that something is a lock.

    says_lock("acquireLock"), says_lock("blocklist")     # True, False
    is_lock(["idempotency:{}", "begin"], freed=True)     # False: a mark of work that was done

Traps: SET NX is also how people drop duplicates and count rates, so names decide; ``block``,
``clock`` and ``unblock`` are not about locks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LOCKISH = re.compile(
    r"Lock|Mutex|Lease|Leader|Semaphore|(un|re|_)lock"
    r"|(?<![A-Za-z])(d?lock|mutex|lease|leader|lck|semaphore|D?LOCK|MUTEX|LEASE|LEADER)"
)
_NOT_LOCKISH = re.compile(r"b?lock(ed)?_?(list|out|chain)|unblock|block", re.I)
_ONCE = re.compile(
    r"idempoten|dedup|duplicate|already_?(?:done|seen)"
    r"|(?<![a-z])(?:seen|processed|visited|delivered)(?![a-z])"
    r"|nonce|cool_?down|debounce|throttl|rate_?limit",
    re.I,
)


def says_lock(text: str) -> bool:
    """Whether a text names a lock, a lease, a leader or a mutex."""
    return bool(_LOCKISH.search(_NOT_LOCKISH.sub("", text)))


def is_lock(words: Sequence[str], *, freed: bool) -> bool:
    """Whether a key that is set only if it is not there is a lock.

    words: the key and the names around.  freed: the same function or class deletes it again; that
    alone makes it a lock, unless it is called a mark that something was done, which is nobody's to
    own.
    """
    return any(map(says_lock, words)) or (freed and not any(map(_ONCE.search, words)))
