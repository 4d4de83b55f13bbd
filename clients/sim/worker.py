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

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from heapq import heappush
from typing import Any, Literal

from clients.recipes.base import Busy, LinkLost, NotConnected, NotHeld
from clients.sim.clock import SimClock
from clients.sim.connection import SimConn
from clients.sim.network import SimLink
from clients.sim.resource import SimResource
from clients.sim.session import LOCAL_NS, Operation, Refused, SimSession
from clients.sim.store import Command
from harness.core.clock import NS_PER_MS
from harness.core.errors import HarnessError
from harness.core.messages import PoolEvent, Reply, Request
from harness.core.protocols import Status
from harness.core.undo import Step

START_NS = 30 * NS_PER_MS  # an interpreter that imports a small library

_BOOT = Request(0, "boot")
_REPLY, _HANG_UP, _LIMIT = 0, 1, 2  # order in which a resumed worker finds its mail


class SimWorker:
    """One client worker.  Implements ``protocols.WorkerHandle``."""

    def __init__(
        self,
        index: int,
        *,
        clock: SimClock,
        outbox: list[PoolEvent],
        session: SimSession,
        link: SimLink,
        resource: SimResource | None,
    ) -> None:
        self.index, self.name = index, f"w{index}"
        self.state: Literal["running", "paused", "dead"] = "running"
        self.incarnation = 1
        self._clock, self._outbox, self._link = clock, outbox, link
        self._session, self._resource = session, resource
        self._conn: SimConn | None = None
        self._request: Request | None = _BOOT
        self._invoke_ns = 0
        self._serial = 0
        self._sent = 0  # commands of the present operation
        self._operation: Operation | None = None
        self._inbox: deque[Request] = deque()
        self._mail: list[tuple[int, Callable[[Any], None], Any]] = []
        clock.at(clock.now() + START_NS, self._say_hello, self._serial)

    @property
    def timeout_ns(self) -> int | None:
        """Longest wait for one answer of the server (network.Owner)."""
        return self._session.timeout_ns

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
        self._end("signal SIGKILL")

    def leave(self) -> None:
        """The same by its own will: no lock is released by any recipe's end."""
        self._end("exit code 0")

    def _end(self, how: str) -> None:
        if self.state == "dead":
            return
        self.state = "dead"
        self._serial += 1
        self._drop_conn()
        self._session.forget()
        self._operation = self._request = None
        self._inbox.clear()
        self._mail.clear()
        self._outbox.append(PoolEvent(self.index, self._clock.now(), died=how))

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
        session = self._session
        value = {
            "protocol": 1,
            "library": session.library,
            "versions": {},
            "lease": {"kind": session.recipe_class.lease, "ttl_ms": None},
            "powers": session.powers(),
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
        self._sent = 0
        self._invoke_ns = self._clock._now_ns
        if request.do in ("open", "close"):
            self._drop_conn()
        try:
            self._operation = self._session.begin(request)
        except Refused as error:
            self._later(LOCAL_NS, self._refuse, str(error))
            return
        self._go_on(self._operation.send, None)

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
        except NotConnected as error:
            definite = self._sent == 1  # nothing of this operation ever left the client
            text = f"cannot connect: {error}"
            self._finish("fail" if definite else "info", None, text)
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
        self._sent += 1
        conn = self._conn
        if conn is None:
            try:
                conn = self._conn = self._link.connect(self)
            except NotConnected as refused:
                self._later(self._link.drawn_ns(), self._lose, refused)
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

    def _lose(self, lost: LinkLost) -> None:
        """The command under way has no answer: the recipe is told."""
        self._drop_conn()
        assert self._operation is not None
        self._go_on(self._operation.throw, lost)

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
            self._lose(LinkLost(why))
        else:
            self._drop_conn()

    def expired(self, conn: SimConn, serial: int) -> None:
        """The time limit of a command is over."""
        if conn is not self._conn or self._stalled(_LIMIT, conn.expire, serial):
            return
        self._lose(LinkLost("timed out waiting for the answer"))

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
        assert self._request is not None
        served_ns = self._conn.served_ns if self._conn is not None else 0
        self._finish("ok", self._session.keep(self._request, result, served_ns), None)

    def _finish(self, outcome: str, value: Any, error: str | None) -> None:
        request = self._request
        assert request is not None
        now_ns = self._clock._now_ns
        reply = Reply(request.id, outcome, self._invoke_ns, now_ns, value, error)
        self._outbox.append(PoolEvent(self.index, now_ns, reply))
        self._operation = self._request = None
        if self._inbox:
            self._take_next()
