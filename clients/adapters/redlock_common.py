"""What the Redlock adapters share: their options, and what each server said of our key.

Libraries that lock on several servers swallow the errors of single ones: an acquire that returns
False may have left its key on a majority, and redlock-py's ``unlock`` returns nothing at all.  So
the connections themselves note the answers (``Ballot``), and the adapter judges by those:

- an acquire that was refused is *unknown* if the key may still be on a majority of the servers,
  because a reply was lost and so was the answer to the clean-up;
- ``not-held`` is said only if so many servers answered that they have no key of ours that those
  which did not answer could make no majority;
- ``busy`` is an observation only where there is one server: with several, three clients can split
  the votes and nobody holds anything, so a refusal is then only a failure (``no quorum``).

Trap: redis-py's own default is to send a command three times.  ``SET NX`` whose reply was lost then
finds its own first success and the vote is lost; ours is 0, and a vote after a resend counts as
"may be there".
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import redis
from redis import exceptions
from redis.retry import Retry

from clients.adapters.redis_common import Resends, was_refused
from clients.worker.adapter import Refused, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Number of ms or times; None is the library's default.
OPTIONS: Mapping[str, int | None] = {
    "client_retries": 0,
    "socket_timeout_ms": None,
    "connect_timeout_ms": None,
}


def read_options(given: Mapping[str, Any], more: Mapping[str, int | None]) -> dict[str, int | None]:
    """All options (``OPTIONS`` and ``more``) with defaults; Refused names every wrong one.

    Values are whole numbers, above 0 unless the default is 0.
    """
    known = {**OPTIONS, **more}
    problems = [
        f"option {name!r} is unknown (known: {', '.join(known)})"
        for name in given
        if name not in known
    ]
    for name, value in given.items():
        if name not in known or (value is None and known[name] is None):
            continue
        lowest = 0 if known[name] == 0 else 1
        if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
            problems.append(f"option {name} is {value!r}; it must be a whole number >= {lowest}")
    if problems:
        raise Refused("; ".join(problems))
    return {**known, **given}


class Ballot:
    """What the servers said of the keys of one operation; safe to use from threads.

    Per owner (the value that marks a key as ours) and server, of the request to set the key:
    ``here`` (granted), ``taken`` (another has it), ``may`` (no answer), ``refused`` (nothing was
    sent, or an error came back); of the request to delete it: ``deleted``, ``absent`` (none of
    ours was there).
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.quorum = size // 2 + 1
        self._lock = threading.Lock()
        self.begin()

    def begin(self) -> None:
        """Forgets everything: another operation starts."""
        with self._lock:
            self._set: dict[tuple[bytes, str], str] = {}
            self._deleted: dict[tuple[bytes, str], str] = {}

    def was_set(self, owner: str | bytes, server: str, word: str) -> None:
        """A key that may be there stays so until it is deleted, whatever a later try is told."""
        vote = (_plain(owner), server)
        with self._lock:
            left = self._set.get(vote) in ("here", "may") and vote not in self._deleted
            if not (left and word in ("taken", "refused")):
                self._set[vote] = word
                self._deleted.pop(vote, None)

    def was_deleted(self, owner: str | bytes, server: str, word: str) -> None:
        with self._lock:
            self._deleted[_plain(owner), server] = word

    def refuse_acquire(self) -> None:
        """Raises for an acquire that the library gave up: Unknown, or Refused with the reason."""
        with self._lock:
            told, deleted = dict(self._set), set(self._deleted)
        owners = list(dict.fromkeys(owner for owner, _ in told))
        left = dict.fromkeys(owners, 0)
        for vote, word in told.items():
            left[vote[0]] += word in ("here", "may") and vote not in deleted
        worst = max(left.values(), default=0)
        if worst >= self.quorum:
            raise Unknown(f"not acquired, but {worst} of {self.size} servers may have the key")
        last = [word for (owner, _), word in told.items() if owner == owners[-1]]
        taken, refused = last.count("taken"), last.count("refused")
        if self.size == 1 and taken:
            raise Refused("busy")
        raise Refused(f"no quorum: {taken} of {self.size} servers said taken, {refused} refused")

    def judge_release(self, owner: str | bytes) -> None:
        """Raises for a release that no majority confirmed: Refused("not-held") or Unknown."""
        with self._lock:
            words = [word for (o, _), word in self._deleted.items() if o == _plain(owner)]
        deleted, absent = words.count("deleted"), words.count("absent")
        if deleted >= self.quorum:
            return
        if absent > self.size - self.quorum:
            raise Refused("not-held")
        raise Unknown(
            f"{deleted} of {self.size} servers deleted the key, {absent} had none, "
            "the others did not answer"
        )


def _plain(owner: str | bytes) -> bytes:
    return owner.encode() if isinstance(owner, str) else owner


class Voter(redis.Redis):
    """A connection to one server that takes down what it answers.

    is_release: tells the script that deletes our key from the library's other scripts.
    """

    ballot: Ballot
    server: str
    resends: Resends
    is_release: Callable[[Sequence[Any]], bool]

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """As in redis-py; the answer or error is noted on its way."""
        before = self.resends.count
        try:
            # The ignore: redis-py leaves this method without types.
            answer = super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except exceptions.RedisError as error:
            if args[0] == "SET":
                self.ballot.was_set(args[2], self.server, _word_of(error))
            raise
        if args[0] == "SET":
            resent = self.resends.count != before
            word = "here" if answer else "may" if resent else "taken"
            self.ballot.was_set(args[2], self.server, word)
        elif self.is_release(args):
            self.ballot.was_deleted(args[4], self.server, "deleted" if answer else "absent")
        return answer


def _word_of(error: exceptions.RedisError) -> str:
    # An error that the server answered means that it did nothing (full, read-only, loading).
    answered = isinstance(error, (exceptions.ResponseError, exceptions.BusyLoadingError))
    return "refused" if answered or was_refused(error) else "may"


def connect(
    nodes: Sequence[Mapping[str, Any]],
    options: Mapping[str, int | None],
    is_release: Callable[[Sequence[Any]], bool],
) -> tuple[list[Voter], Ballot]:
    """One connection per server, none of them opened yet, with the ballot that they share."""
    if not nodes:
        raise Refused("there are no nodes to lock on")
    ballot, voters = Ballot(len(nodes)), []
    for node in nodes:
        resends = Resends()
        arguments: dict[str, Any] = {"host": node["host"], "port": node["port"]}
        arguments["client_name"] = f"lockhavoc-{node['port']}"  # by which a fault finds it
        arguments["retry"] = Retry(resends, options["client_retries"] or 0)
        for name, keyword in (
            ("socket_timeout_ms", "socket_timeout"),
            ("connect_timeout_ms", "socket_connect_timeout"),
        ):
            limit_ms = options[name]
            if limit_ms is not None:
                arguments[keyword] = limit_ms / 1000
        voter = Voter(**arguments)
        voter.ballot, voter.server, voter.resends = ballot, str(node["name"]), resends
        voter.is_release = is_release
        voters.append(voter)
    return voters, ballot
