"""A simulated worker: a recipe, one session, and the life of a process.

It answers the same requests with the same replies as a real worker (clients/worker/session.py),
carrying out the recipe command by command.  It can be paused (what arrives waits in its mailbox
while time goes on, so what it does next comes late), killed (what it sent still arrives) and
started anew.

    worker.hand_over(Request(1, "acquire", "k0", hold="0-0", ttl_ms=1000, timeout_ms=50))

Traps: everything planned for later carries the serial of the operation that planned it and is
ignored when that operation is over or the process was killed.  After a pause an answer that is
there comes before a time limit that has passed, as with a real socket.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from heapq import heappush
from typing import Any, Literal

from clients.recipes.base import Busy, Grant, LinkLost, NotHeld, Recipe
from clients.sim.clock import SimClock
from clients.sim.network import SimConn, SimLink
from clients.sim.resource import SimResource
from clients.sim.store import Command
from clients.sim.truth import Truth
from harness.core.clock import NS_PER_MS
from harness.core.errors import HarnessError
from harness.core.messages import PoolEvent, Reply, Request
from harness.core.protocols import Status
from harness.core.undo import Step

START_NS = 30 * NS_PER_MS  # an interpreter that imports a small library
LOCAL_NS = 20_000  # what needs no server still costs the worker's own time
SOCKET_TIMEOUT_MS = 2_000
OPTIONS = ("poll_ms", "poll_ms_max", "socket_timeout_ms")

_BOOT = Request(0, "boot")
_REPLY, _HANG_UP, _LIMIT = 0, 1, 2  # order in which a resumed worker finds its mail


class Refused(Exception):
    """Surely no effect: a request that is wrong in itself, or the resource's refusal."""


class SimWorker:
    """One client worker.  Implements ``protocols.WorkerHandle``."""

    def __init__(
        self,
        index: int,
        *,
        clock: SimClock,
        outbox: list[PoolEvent],
        recipe: type[Recipe],
        library: str,
        link: SimLink,
        resource: SimResource | None,
        rng: random.Random,
        truth: Truth | None,
    ) -> None:
        self.index, self.name = index, f"w{index}"
        self.state: Literal["running", "paused", "dead"] = "running"
        self.incarnation = 1
        self.timeout_ns: int | None = SOCKET_TIMEOUT_MS * NS_PER_MS
        self._clock, self._outbox, self._link = clock, outbox, link
        self._recipe_class, self._library = recipe, library
        self._resource, self._random, self._truth = resource, rng, truth
        self._recipe: Recipe | None = None
        self._conn: SimConn | None = None
        self._request: Request | None = _BOOT
        self._invoke_ns = 0
        self._serial = 0
        self._operation: Generator[Command, Any, Any] | None = None
        self._grants: dict[str, Grant] = {}
        self._versions: dict[tuple[str | None, str | None], Any] = {}
        self._inbox: deque[Request] = deque()
        self._mail: list[tuple[int, Callable[[Any], None], Any]] = []
        self._begin: Mapping[str, Callable[[Request], Generator[Command, Any, Any]]] = {
            "acquire": self._acquire,
            "release": self._release,
            "renew": self._renew,
            "believes": self._believes,
            "write": self._use_resource,
            "read": self._use_resource,
            "open": self._open,
            "close": self._close,
        }
        clock.at(clock.now() + START_NS, self._say_hello, self._serial)

    # ---- the process ---------------------------------------------------------------------

    def status(self) -> Status:
        return Status(self.state, f"{self.name}#{self.incarnation}")

    def pause(self) -> None:
        if self.state == "dead":
            raise HarnessError(f"worker {self.name} is dead and cannot be paused")
        self.state = "paused"

    def resume(self) -> None:
        """Goes on with what is in the mailbox, at this instant."""
        if self.state != "paused":
            return
        self.state = "running"
        mail, self._mail = self._mail, []
        for _, call, argument in sorted(mail, key=lambda entry: entry[0]):
            call(argument)
        self._take_next()

    def undo_pause(self) -> Sequence[Step]:
        """A simulated pause ends with this process: nothing to undo from another one."""
        return ()

    def kill(self) -> None:
        """What it sent is on its way; everything else is gone."""
        if self.state == "dead":
            return
        self.state = "dead"
        self._serial += 1
        self._forget_session()
        self._operation = self._request = None
        self._inbox.clear()
        self._mail.clear()
        self._outbox.append(PoolEvent(self.index, self._clock.now(), died="signal SIGKILL"))

    def start(self) -> None:
        """Starts it anew if it is dead; the event ``hello`` follows after START_NS."""
        if self.state != "dead":
            return
        self.state = "running"
        self.incarnation += 1
        self._request = _BOOT
        self._clock.at(self._clock.now() + START_NS, self._say_hello, self._serial)

    def _say_hello(self, serial: int) -> None:
        if serial != self._serial or self._stalled(_REPLY, self._say_hello, serial):
            return
        recipe = self._recipe_class
        powers = [("renew", recipe.renewable), ("believes", True), ("fenced", recipe.fencing)]
        value = {
            "protocol": 1,
            "library": self._library,
            "versions": {},
            "lease": {"kind": recipe.lease, "ttl_ms": None},
            "powers": [name for name, has in powers if has],
        }
        self._outbox.append(
            PoolEvent(self.index, self._clock.now(), Reply(event="hello", value=value))
        )
        self._request = None
        self._take_next()

    # ---- requests ------------------------------------------------------------------------

    def hand_over(self, request: Request) -> None:
        """A request arrives; it waits its turn if the worker is busy or paused."""
        if self.state == "dead":
            return
        if self._request is None and self.state == "running":
            self._take(request)
        else:
            self._inbox.append(request)

    def _take_next(self) -> None:
        if self._request is None and self._inbox and self.state == "running":
            self._take(self._inbox.popleft())

    def _take(self, request: Request) -> None:
        self._request = request
        self._serial += 1
        self._invoke_ns = self._clock._now_ns
        begin = self._begin.get(request.do)
        try:
            if begin is None:
                raise Refused(f"do is {request.do!r}; it must be one of {', '.join(self._begin)}")
            if self._recipe is None and request.do not in ("open", "close"):
                raise Refused(f"do is {request.do!r}, but the client is not open; send open first")
            self._operation = begin(request)
        except Refused as error:
            self._later(LOCAL_NS, self._refuse, str(error))
            return
        self._go_on(self._operation.send, None)

    def _acquire(self, request: Request) -> Generator[Command, Any, Grant]:
        key, hold = self._key_of(request), self._hold_of(request)
        if request.ttl_ms is None:
            raise Refused("ttl_ms is missing; do 'acquire' needs it")
        if hold in self._grants:
            raise Refused(f"hold is {hold!r}, which was granted before; holds must be fresh")
        return self._opened().acquire(key, request.ttl_ms, request.timeout_ms or 0)

    def _release(self, request: Request) -> Generator[Command, Any, None]:
        grant = self._grant_of(request)
        if self._truth is not None:
            self._truth.released(self._hold_of(request), self._invoke_ns)
        return self._opened().release(self._key_of(request), grant)

    def _renew(self, request: Request) -> Generator[Command, Any, None]:
        recipe = self._opened()
        if not recipe.renewable:
            raise Refused(f"do is 'renew', which {self._library} cannot do")
        if request.ttl_ms is None:
            raise Refused("ttl_ms is missing; do 'renew' needs it")
        return recipe.renew(self._key_of(request), self._grant_of(request), request.ttl_ms)

    def _believes(self, request: Request) -> Generator[Command, Any, bool]:
        return self._opened().believes(self._key_of(request), self._grant_of(request))

    def _use_resource(self, request: Request) -> Generator[Command, Any, Any]:
        if self._resource is None:
            raise Refused(f"do is {request.do!r}, but open named no resource")
        key, given = self._key_of(request), request.value
        expect = request.options.get("expect", self._versions.get((key, request.hold)))
        value = given
        if isinstance(given, dict) and "expect" in given:
            value, expect = given.get("value"), given["expect"]
        message = {
            "do": request.do,
            "key": key,
            "hold": request.hold,
            "token": request.token,
            "value": value,
            "expect": expect,
        }
        return self._exchange(message, request)

    def _exchange(
        self, message: Mapping[str, Any], request: Request
    ) -> Generator[Command, Any, dict[str, Any]]:
        reply = yield "RESOURCE", message
        if not reply["ok"]:
            raise Refused(reply["why"])
        self._versions[request.key, request.hold] = reply["version"]
        wanted = ("version", "seq") if request.do == "write" else ("value", "version")
        return {name: reply.get(name) for name in wanted}

    def _open(self, request: Request) -> Generator[Command, Any, None]:
        options = request.options.get("options") or {}
        strange = sorted(set(options) - set(OPTIONS))
        if strange:
            raise Refused(f"options.{strange[0]}: unknown option; known: {', '.join(OPTIONS)}")
        # An open session is closed first: after an unknown outcome nothing of it may live on.
        self._forget_session()
        limit_ms = options.get("socket_timeout_ms", SOCKET_TIMEOUT_MS)
        self.timeout_ns = limit_ms * NS_PER_MS if limit_ms else None
        self._recipe = self._recipe_class(self._clock.now, self._random, options)
        return _local()

    def _close(self, request: Request) -> Generator[Command, Any, None]:
        self._forget_session()
        return _local()

    def _forget_session(self) -> None:
        self._drop_conn()
        self._recipe = None
        self._grants.clear()
        self._versions.clear()

    def _key_of(self, request: Request) -> str:
        if request.key is None:
            raise Refused(f"key is missing; do {request.do!r} needs it")
        return request.key

    def _hold_of(self, request: Request) -> str:
        if request.hold is None:
            raise Refused(f"hold is missing; do {request.do!r} needs it")
        return request.hold

    def _grant_of(self, request: Request) -> Grant:
        hold = self._hold_of(request)
        if hold not in self._grants:
            raise Refused(f"hold is {hold!r}, which has no grant in this worker")
        return self._grants[hold]

    def _opened(self) -> Recipe:
        assert self._recipe is not None, "checked when the request was taken"
        return self._recipe

    # ---- carrying out --------------------------------------------------------------------

    def _go_on(self, resume: Callable[[Any], Command], value: Any) -> None:
        """Resumes the recipe with an answer (or an exception) and does what it asks next."""
        try:
            command = resume(value)
        except StopIteration as done:
            self._succeed(done.value)
        except Busy:
            self._finish("fail", None, "busy")
        except NotHeld:
            self._finish("fail", None, "not-held")
        except Refused as error:
            self._finish("fail", None, str(error))
        except Exception as error:  # also a bug of the recipe: nobody knows what happened
            self._finish("info", None, f"{type(error).__qualname__}: {error}")
        else:
            word = command[0]
            if word == "SLEEP":
                self._later(round(command[1] * NS_PER_MS), self._answer, None)
            elif word == "RESOURCE":
                at_ns = self._clock.now() + self._link.drawn_ns()
                self._clock.at(at_ns, self._at_resource, (self._serial, command[1]))
            else:
                self._send(command)

    def _send(self, command: Command) -> None:
        conn = self._conn
        if conn is None:
            try:
                conn = self._conn = self._link.connect(self)
            except LinkLost as lost:
                self._later(self._link.drawn_ns(), self._lose, str(lost))
                return
        conn.send(command)

    def _later(self, after_ns: int, call: Callable[[Any], None], argument: Any) -> None:
        """``call(argument)`` in this operation, if it is still the same one then."""
        clock = self._clock
        plan = (self._serial, call, argument)
        heappush(clock.heap, (clock._now_ns + after_ns, clock.number(), self._due, plan))

    def _due(self, plan: tuple[int, Callable[[Any], None], Any]) -> None:
        serial, call, argument = plan
        if serial == self._serial and not self._stalled(_REPLY, self._due, plan):
            call(argument)

    def _stalled(self, rank: int, call: Callable[[Any], None], argument: Any) -> bool:
        """True if the process is stopped: the news waits for it."""
        if self.state == "running":
            return False
        if self.state == "paused":
            self._mail.append((rank, call, argument))
        return True

    def _answer(self, value: Any) -> None:
        assert self._operation is not None
        self._go_on(self._operation.send, value)

    def _refuse(self, why: str) -> None:
        self._finish("fail", None, why)

    def _lose(self, why: str) -> None:
        """The command under way has no answer: the recipe is told."""
        self._drop_conn()
        assert self._operation is not None
        self._go_on(self._operation.throw, LinkLost(why))

    def _drop_conn(self) -> None:
        if self._conn is not None:
            self._conn.close()
            self._conn = None

    # ---- news from the connection (network.Owner) ------------------------------------------

    def replied(self, conn: SimConn, reply: Any) -> None:
        """An answer of the server."""
        if self.state != "running":
            self._stalled(_REPLY, self._replied_late, (conn, reply))
            return
        operation = self._operation
        if conn is not self._conn or operation is None:
            return
        if isinstance(reply, Exception):
            self._go_on(operation.throw, reply)
        else:
            self._go_on(operation.send, reply)

    def _replied_late(self, late: tuple[SimConn, Any]) -> None:
        self.replied(*late)

    def dropped(self, conn: SimConn, why: str) -> None:
        """The connection was closed; if it is idle, the next command makes a new one."""
        if conn is not self._conn or self._stalled(_HANG_UP, conn.hang_up, why):
            return
        if conn.waiting:
            self._lose(why)
        else:
            self._drop_conn()

    def expired(self, conn: SimConn, serial: int) -> None:
        """The time limit of a command is over."""
        if conn is not self._conn or self._stalled(_LIMIT, conn.expire, serial):
            return
        self._lose("timed out waiting for the answer")

    # ---- the resource, which workers reach past every proxy --------------------------------

    def _at_resource(self, sent: tuple[int, Mapping[str, Any]]) -> None:
        assert self._resource is not None
        serial, message = sent
        clock = self._clock
        reply = self._resource.ask(message, now_ns=clock.now())
        plan = (serial, self._answer, reply)
        clock.at(clock.now() + self._link.drawn_ns(), self._due, plan)

    # ---- replies ---------------------------------------------------------------------------

    def _succeed(self, result: Any) -> None:
        request = self._request
        assert request is not None
        do, hold = request.do, request.hold
        value = None
        if do == "acquire" and hold is not None:
            self._grants[hold] = result
            value = {"owner": result.owner, "token": result.token}
        elif do == "release" and hold is not None:
            del self._grants[hold]
        elif do not in ("open", "close"):
            value = result
        if self._truth is not None and self._conn is not None and hold is not None:
            self._truth.succeeded(request, result, self._conn.served_ns)
        self._finish("ok", value, None)

    def _finish(self, outcome: str, value: Any, error: str | None) -> None:
        request = self._request
        assert request is not None
        now_ns = self._clock._now_ns
        reply = Reply(request.id, outcome, self._invoke_ns, now_ns, value, error)
        self._outbox.append(PoolEvent(self.index, now_ns, reply))
        self._operation = self._request = None
        if self._inbox:
            self._take_next()


def _local() -> Generator[Command, Any, None]:
    """An operation that needs no server."""
    yield "SLEEP", LOCAL_NS / NS_PER_MS
