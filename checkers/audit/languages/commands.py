"""Redis commands as the clients of four languages spell them, in one form.

    command(call, names)    # Command("set", key, value, nx=True, lease=..., lease_unit_ns=MS)

Clients: ioredis, node-redis; go-redis, redigo; Jedis, Lettuce, Spring Data Redis; redis-rb, the
cache of Rails.

Traps: a duration of Go has its unit with it, a bare number there is nanoseconds.  SetNX of go-redis
with 0 has no expiry.  ``open_ended`` says that an argument could not be read, so nothing is known
of the lease.
"""

from __future__ import annotations

import msgspec

from checkers.audit.knowledge_code import MS, NS, S
from checkers.audit.languages.tree import Node
from checkers.audit.languages.values import Names


class Command(msgspec.Struct):
    """One command; ``answers`` are the parts of the answer that say whether it was done."""

    verb: str  # set, del, expire, eval
    key: Node | None = None
    value: Node | None = None
    nx: bool = False
    xx: bool = False
    lease: Node | None = None
    lease_unit_ns: int = S
    open_ended: bool = False
    by_error: bool = False  # that it was not done is told by the error: redis.Nil
    script: Node | None = None
    values: list[Node] = msgspec.field(default_factory=list)


_UNITS = {"PX": MS, "EX": S, "px": MS, "ex": S}
_SET = {"set", "Set", "SetArgs", "setnx", "setNX", "setNx", "SetNX", "setIfAbsent", "SetEX",
        "write", "setex", "psetex", "setEx", "pSetEx"}  # fmt: skip
_DEL = {"del", "Del", "unlink", "Unlink", "delete"}
_EXPIRE = {"expire": S, "pexpire": MS, "pExpire": MS, "Expire": NS, "PExpire": NS}
_EVAL = {"eval", "Eval", "evalsha", "EvalSha", "evalSha", "execute", "Run", "EVAL"}
_RAW = {"Do", "do", "sendCommand", "send_command", "call", "DoContext", "send"}


def command(call: Node, names: Names) -> Command | None:
    """The command that a call sends, or None."""
    name = call.name
    if call.on is None and name not in ("del",):
        return None
    language = names.home(call).language
    if name in _RAW:
        return _raw(call, names)
    args = _without_context(call, language)
    if name in _EVAL:
        return _eval(call, args, names)
    if not args:
        return None
    if name in _DEL:
        keys = args[0].args if args[0].kind == "list" and args[0].args else args
        return Command("del", key=keys[0])
    if name in _EXPIRE:
        return _expire(name, args)
    if name not in _SET:
        return None
    return _set(call, args, language, names)


def _without_context(call: Node, language: str) -> list[Node]:
    """The arguments without the context that go-redis wants first."""
    args = call.args
    if language == "go" and args and _is_context(args[0]):
        return args[1:]
    return args


def _is_context(node: Node) -> bool:
    start = node.dotted()
    return start.startswith("context.") or start.lower().rpartition(".")[2].endswith("ctx")


def _expire(name: str, args: list[Node]) -> Command | None:
    if len(args) < 2:
        return None
    unit = _EXPIRE[name]
    if len(args) > 2 and Names.unit_of(args[2]):
        unit = Names.unit_of(args[2])
    return Command("expire", key=args[0], lease=args[1], lease_unit_ns=unit)


def _set(call: Node, args: list[Node], language: str, names: Names) -> Command | None:
    if len(args) < 2 and call.name != "write":
        return None
    found = Command("set", key=args[0], value=args[1] if len(args) > 1 else None)
    if call.name == "SetNX" and len(args) == 3:
        found.nx, found.lease, found.lease_unit_ns = True, args[2], NS
        return found
    if call.name == "Set" and language == "go":
        if len(args) != 3:
            return None
        found.lease, found.lease_unit_ns = args[2], NS
        return found
    if call.name in ("setnx", "setNX", "setNx"):
        found.nx = True
        return found if len(args) == 2 else None
    if call.name == "setIfAbsent":
        found.nx = True
        _timed(found, args[2:])
        return found
    if call.name == "write":
        return _rails(call, found)
    if call.name in ("setex", "psetex", "setEx", "pSetEx", "SetEX"):
        return None
    found.by_error = call.name == "SetArgs"
    if call.words:
        _options(found, call.words, names)
    for extra in args[2:]:
        if extra.kind == "dict":
            _options(found, extra.words, names)
            found.open_ended |= bool(extra.args)
    _flags(found, args[2:], names)
    _builder(found, args[2:])
    return found


def _timed(found: Command, rest: list[Node]) -> None:
    """setIfAbsent(key, value, 30, TimeUnit.SECONDS) or (key, value, Duration)."""
    if len(rest) == 2:
        found.lease, found.lease_unit_ns = rest[0], Names.unit_of(rest[1]) or S
    elif len(rest) == 1:
        found.lease, found.lease_unit_ns = rest[0], 0


def _rails(call: Node, found: Command) -> Command | None:
    if "unless_exist" not in call.words:
        return None
    found.nx = True
    if "expires_in" in call.words:
        found.lease, found.lease_unit_ns = call.words["expires_in"], S
    else:
        found.open_ended = True  # the default of the cache's settings
    return found


def _options(found: Command, words: dict[str, Node], names: Names) -> None:
    """{NX: true, PX: 30000}, nx: true, redis.SetArgs{Mode: "NX", TTL: ttl}."""
    for word, value in words.items():
        if word in ("NX", "nx"):
            found.nx = value.kind == "const" and value.value is True
        elif word in ("XX", "xx"):
            found.xx = True
        elif word in ("condition", "Mode"):
            mode = names.text(value)
            found.nx, found.xx = mode == "NX", mode == "XX"
        elif word in _UNITS:
            found.lease, found.lease_unit_ns = value, _UNITS[word]
        elif word == "TTL":
            found.lease, found.lease_unit_ns = value, NS
        elif word == "expiration" and value.kind == "dict":
            kind = value.words.get("type")
            unit = None if kind is None else names.text(kind)
            if unit in _UNITS and "value" in value.words:
                found.lease, found.lease_unit_ns = value.words["value"], _UNITS[unit]
            else:
                found.open_ended = True
        elif word not in ("GET", "get", "KEEPTTL", "keepttl", "Get", "KeepTTL"):
            found.open_ended = True


def _flags(found: Command, rest: list[Node], names: Names) -> None:
    """set(key, value, "NX", "PX", 30000)."""
    for at, node in enumerate(rest):
        flag = names.resolve(node).name.upper() if names.resolve(node).kind == "string" else ""
        if flag == "NX":
            found.nx = True
        elif flag == "XX":
            found.xx = True
        elif flag in ("PX", "EX") and at + 1 < len(rest):
            found.lease, found.lease_unit_ns = rest[at + 1], _UNITS[flag]
        elif flag in ("PXAT", "EXAT") or node.kind == "other":
            found.open_ended = True


def _builder(found: Command, rest: list[Node]) -> None:
    """new SetParams().nx().px(30000), SetArgs.Builder.nx().ex(10)."""
    for extra in rest:
        chain = [n for n in extra.walk() if n.kind == "call"] if extra.kind == "call" else []
        for link in chain:
            if link.name in ("nx", "xx") and not link.args:
                found.nx, found.xx = found.nx or link.name == "nx", link.name == "xx"
            elif link.name in ("px", "ex") and len(link.args) == 1:
                found.lease, found.lease_unit_ns = link.args[0], _UNITS[link.name]
            elif link.name in ("pxAt", "exAt"):
                found.open_ended = True


def _raw(call: Node, names: Names) -> Command | None:
    """Do("SET", key, value, "NX", "PX", 30000) and sendCommand(["SET", ...])."""
    args = _without_context(call, names.home(call).language)
    if args and args[0].kind == "list":
        args = args[0].args
    if not args or args[0].kind != "string":
        return None
    verb, rest = args[0].name.upper(), args[1:]
    if verb in ("SET", "SETNX") and len(rest) >= 2:
        found = Command("set", key=rest[0], value=rest[1], nx=verb == "SETNX")
        _flags(found, rest[2:], names)
        return found
    if verb in ("DEL", "UNLINK") and rest:
        return Command("del", key=rest[0])
    if verb in ("EXPIRE", "PEXPIRE") and len(rest) >= 2:
        unit = S if verb == "EXPIRE" else MS
        return Command("expire", key=rest[0], lease=rest[1], lease_unit_ns=unit)
    if verb == "EVAL" and rest:
        return Command("eval", script=rest[0], values=rest[1:])
    return None


def _eval(call: Node, args: list[Node], names: Names) -> Command | None:
    values = [*args[1:], *call.words.values()]
    for extra in list(values):
        if extra.kind == "dict":
            values += extra.words.values()
    flat = [n for v in values for n in ([v, *v.args] if v.kind == "list" else [v])]
    flat += [n for v in values if v.kind == "call" for n in v.args]  # List.of(key)
    if call.name == "Run" and call.on is not None:  # script.Run(ctx, client, keys, args)
        return Command("eval", script=call.on, values=flat)
    return Command("eval", script=args[0], values=flat) if args else None
