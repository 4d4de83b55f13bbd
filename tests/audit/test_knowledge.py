"""Tables that belong together: kinds, rules, libraries and the libraries' own signatures."""

from __future__ import annotations

import inspect

import redis
import redis.lock

from checkers.audit.kinds import KINDS
from checkers.audit.knowledge import BY_METHOD, CLIENTS, LIBRARIES
from checkers.audit.knowledge_code import CODE_LIBRARIES
from checkers.audit.model import Dimension
from checkers.audit.rules.registry import RULES
from checkers.registry import CHECKERS


def test_every_rule_names_a_kind_and_is_called_as_it_is_registered() -> None:
    for name in RULES.names():
        rule = RULES.load(name)
        assert rule.id == name
        assert rule.kind in KINDS
        assert rule.dimension in Dimension
        assert rule.fixes[""]
        assert len(rule.interleaving) >= 2


def test_every_checker_that_a_kind_names_exists() -> None:
    named = {checker for kind in KINDS.values() for checker in kind.live}
    assert named <= set(CHECKERS.names())
    assert list(KINDS) == [f"K{number:02}" for number in range(1, 26)]


def test_fixes_are_for_libraries_that_are_known() -> None:
    languages = {row.language for row in CODE_LIBRARIES.values()} | {"lua", "sql"}
    known = {"", "redis commands", "advisory lock", "lock table"}
    known |= {*LIBRARIES, *CODE_LIBRARIES, *languages}
    for name in RULES.names():
        assert set(RULES.load(name).fixes) <= known
    assert {family for family, _ in BY_METHOD} <= set(CLIENTS.values())


def test_the_row_of_redis_py_is_what_redis_py_does() -> None:
    row = LIBRARIES["redis-py"]
    method = list(inspect.signature(redis.Redis.lock).parameters)
    maker = list(inspect.signature(redis.lock.Lock).parameters)
    assert method[1:].index(row.lease_args[0]) == row.method_lease_at  # without self
    assert maker.index(row.lease_args[0]) == row.lease_at
    assert inspect.signature(redis.Redis.lock).parameters["timeout"].default is None
    assert set(row.wait_args) <= set(method)
    for name in (*row.renews_by, *row.releases_by, "acquire"):
        assert hasattr(redis.lock.Lock, name)
    with_block = inspect.getsource(redis.lock.Lock.__enter__)
    assert row.with_raises == ("raise" in with_block)
