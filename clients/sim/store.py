"""A Redis-like server in virtual time: strings, sorted sets, expiry, counters, named scripts.

    store = SimStore(clock)
    store.execute(("SET", "k", "me", "NX", "PX", 100))     # True, or None if there is a "k"
    store.execute(("EVAL", RELEASE, ("k",), ("me",)))      # 1

One command at a time, each at one instant, as in Redis.  A script runs through its Python twin.
Answers are those of redis-py: True/None, str/None, int; wrong use raises ServerError with Redis'
words.

Expiry is judged as the real servers do it: on the *wall* clock, in whole milliseconds, over when
now > deadline.  So a lease lasts between ttl and ttl + 1 ms, never less, and ``wall_offset_ns``
(a step of the server's wall clock) ends or stretches every lease at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clients.recipes.base import ServerError
from clients.sim import sorted_sets
from clients.sim.clock import SimClock
from harness.core.clock import NS_PER_MS

Command = tuple[Any, ...]
Entry = tuple[Any, int | None]  # value (text or a sorted set), deadline in ms of the wall clock

NOT_AN_INTEGER = "value is not an integer or out of range"
WRONG_KIND = "WRONGTYPE Operation against a key holding the wrong kind of value"
NO_REPLICAS = "NOREPLICAS Not enough good replicas to write."
WRITES = frozenset({"SET", "DEL", "EXPIRE", "PEXPIRE", "INCR", "FLUSHALL", "DECR", "PEXPIREAT"})
WRITES |= sorted_sets.WRITES
CONFIG = {"min-replicas-to-write": "0"}
"""What CONFIG GET and SET know, with the values at the start."""
PPM = 1_000_000
BAD_EXPIRE = "invalid expire time in 'set' command"


class SimStore:
    """The data of one server.  ``execute`` answers one command."""

    def __init__(self, clock: SimClock) -> None:
        self._clock = clock
        self._data: dict[str, Entry] = {}
        self.wall_offset_ns = self.wall_rate_ppm = self.wall_since_ns = 0
        self.config = dict(CONFIG)
        self.read_only = False  # more replicas are wanted than a server alone can have
        self.commands = self.echoes = 0
        self._do: dict[str, Callable[[Command], Any]] = {
            "SET": self._set,
            "GET": self._get,
            "DEL": self._del,
            "EXPIRE": self._expire,
            "PEXPIRE": self._pexpire,
            "PTTL": self._pttl,
            "INCR": self._incr,
            "EVAL": self._eval,
            "EXISTS": self._exists,
            "FLUSHALL": self._flushall,
            "ECHO": self._echo,
            "CONFIG": self._config,
            "DECR": self._decr,
            "PEXPIREAT": self._pexpireat,
            "TIME": self._time,
        }
        for name, do in sorted_sets.COMMANDS.items():
            self._do[name] = self._on_set(do)

    def execute(self, command: Command) -> Any:
        """Carries out one command now; ServerError for what a server would refuse."""
        self.commands += 1
        try:
            do = self._do[command[0]]
        except KeyError:
            raise ServerError(f"ERR unknown command '{command[0]}'") from None
        if self.read_only and command[0] in WRITES:
            raise ServerError(NO_REPLICAS)
        return do(command)

    def answer(self, command: Command) -> Any:
        """As ``execute``, with an error as an answer like any other."""
        try:
            return self.execute(command)
        except ServerError as error:
            return error

    def call(self, *command: Any) -> Any:
        """``redis.call`` of scripts."""
        if self.read_only and command[0] in WRITES:
            raise ServerError(NO_REPLICAS)
        return self._do[command[0]](command)

    def restarted(self) -> None:
        """Another process: counts and configuration are as at the first start."""
        self.config = dict(CONFIG)
        self.read_only = False
        self.commands = self.echoes = 0

    def wipe(self) -> None:
        """Empties everything, as a restart without data does."""
        self._data.clear()

    def keys(self) -> list[str]:
        """Keys that have not expired, sorted."""
        return sorted(key for key in list(self._data) if self._live(key) is not None)

    def wall_ms(self) -> int:
        """The server's wall clock in whole ms."""
        return self.wall_ns() // NS_PER_MS

    def wall_ns(self) -> int:
        """The server's wall clock; without a skew the simulated time itself."""
        now_ns = self._clock._now_ns
        if self.wall_rate_ppm:
            drift_ns = (now_ns - self.wall_since_ns) * self.wall_rate_ppm // PPM
            return now_ns + self.wall_offset_ns + drift_ns
        return now_ns + self.wall_offset_ns

    def _live(self, key: str) -> Entry | None:
        entry = self._data.get(key)
        if entry is None:
            return None
        deadline_ms = entry[1]
        if deadline_ms is not None and self.wall_ns() // NS_PER_MS > deadline_ms:
            del self._data[key]
            return None
        return entry

    def _set(self, command: Command) -> bool | None:
        key, words = command[1], command[3:]
        if words:
            only, deadline_ms = self._set_options(words)
            if only is not None and (self._live(key) is None) != (only == "NX"):
                return None
        else:
            deadline_ms = None
        self._data[key] = (str(command[2]), deadline_ms)
        return True

    def _set_options(self, words: Command) -> tuple[str | None, int | None]:
        if words[:2] == ("NX", "PX") and type(words[-1]) is int and len(words) == 3:
            if words[2] <= 0:
                raise ServerError(BAD_EXPIRE)
            return "NX", self.wall_ms() + words[2]  # what every lock asks for
        only: str | None = None
        deadline_ms: int | None = None
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            if word in ("NX", "XX") and only in (None, word):
                only = word
            elif word in ("PX", "EX") and deadline_ms is None and at < len(words):
                span = _integer(words[at]) * (1000 if word == "EX" else 1)
                at += 1
                if span <= 0:
                    raise ServerError(BAD_EXPIRE)
                deadline_ms = self.wall_ms() + span
            else:
                raise ServerError("syntax error")
        return only, deadline_ms

    def _get(self, command: Command) -> str | None:
        entry = self._live(command[1])
        return None if entry is None else _text(entry)

    def _del(self, command: Command) -> int:
        count = 0
        for key in command[1:]:
            if self._live(key) is not None:
                del self._data[key]
                count += 1
        return count

    def _exists(self, command: Command) -> int:
        return sum(self._live(key) is not None for key in command[1:])

    def _expire(self, command: Command) -> int:
        return self._pexpire((command[0], command[1], _integer(command[2]) * 1000))

    def _pexpire(self, command: Command) -> int:
        entry, span_ms = self._live(command[1]), _integer(command[2])
        if entry is None:
            return 0
        if span_ms <= 0:
            del self._data[command[1]]
        else:
            self._data[command[1]] = (entry[0], self.wall_ms() + span_ms)
        return 1

    def _pttl(self, command: Command) -> int:
        entry = self._live(command[1])
        if entry is None:
            return -2
        return -1 if entry[1] is None else entry[1] - self.wall_ms()

    def _pexpireat(self, command: Command) -> int:
        entry = self._live(command[1])
        if entry is None:
            return 0
        self._data[command[1]] = (entry[0], _integer(command[2]))
        return int(self._live(command[1]) is not None)

    def _time(self, command: Command) -> list[str]:
        seconds, rest_ns = divmod(self.wall_ns(), 1_000 * NS_PER_MS)
        return [str(seconds), str(rest_ns // 1000)]

    def _on_set(self, do: Callable[[sorted_sets.Scores, Command], Any]) -> Callable[[Command], Any]:
        """A command on a sorted set: an empty one is not there, text is another kind."""

        def carry_out(command: Command) -> Any:
            entry = self._live(command[1])
            scores, deadline_ms = ({}, None) if entry is None else entry
            if not isinstance(scores, dict):
                raise ServerError(WRONG_KIND)
            reply = do(scores, command)
            if scores:
                self._data[command[1]] = (scores, deadline_ms)
            else:
                self._data.pop(command[1], None)
            return reply

        return carry_out

    def _decr(self, command: Command) -> int:
        return self._incr(command, by=-1)

    def _incr(self, command: Command, by: int = 1) -> int:
        entry = self._live(command[1])
        value, deadline_ms = ("0", None) if entry is None else (_text(entry), entry[1])
        count = _integer(value) + by
        if not -(1 << 63) <= count < 1 << 63:
            raise ServerError("increment or decrement would overflow")
        self._data[command[1]] = (str(count), deadline_ms)
        return count

    def _eval(self, command: Command) -> Any:
        return command[1].python(self.call, command[2], command[3])

    def _flushall(self, command: Command) -> bool:
        self._data.clear()
        return True

    def _config(self, command: Command) -> Any:
        verb, name = str(command[1]).upper(), str(command[2])
        if verb == "GET":
            return [name, self.config[name]] if name in self.config else []
        if name not in self.config:
            raise ServerError(f"Unknown option or number of arguments for CONFIG SET - '{name}'")
        _integer(command[3])
        self.config[name] = str(command[3])
        self.read_only = self.config["min-replicas-to-write"] != "0"
        return True

    def _echo(self, command: Command) -> str:
        self.echoes += 1
        return str(command[1])


def _text(entry: Entry) -> str:
    if not isinstance(entry[0], str):
        raise ServerError(WRONG_KIND)
    return entry[0]


def _integer(value: Any) -> int:
    """Redis' reading of an integer: plain decimal, no sign but a minus, no blanks."""
    if isinstance(value, int):
        return value
    digits = value[1:] if value.startswith("-") else value
    plain = digits.isascii() and digits.isdigit() and len(digits) < 20
    if value != "0" and (not plain or digits[0] == "0"):
        raise ServerError(NOT_AN_INTEGER)
    number = int(value)
    if not -(1 << 63) <= number < 1 << 63:
        raise ServerError(NOT_AN_INTEGER)
    return number
