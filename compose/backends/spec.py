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
from pathlib import Path
from typing import Any

import msgspec

from compose.binary import Binary
from harness.core.errors import UserError
from harness.core.protocols import Node

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


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One server of a backend.

    name: also the service of the Compose file.  port: where clients (and probes) reach it inside
    its container.  peer_ports: where *other nodes* reach it; no two nodes of a backend share one,
    since each node dials them on its own loopback, where its proxies listen.  family: what it
    speaks, "" = as the backend.  clients: do workers get a link to it.  data: folder of its data,
    a volume, "" = it keeps none.  votes: is it one of those whose majority decides who grants (the
    aims ``minority`` and ``majority`` mean those alone)?
    """

    name: str
    port: int
    peer_ports: tuple[int, ...] = ()
    family: str = ""
    clients: bool = True
    data: str = "/data"
    votes: bool = True


class LocalProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A node as a local process.

    argv: its command.  version: of its binary, as it must say itself ("" = not compared).
    env: besides PATH and LANG.  files: name below its data folder -> text, written before each
    start.  prepare: commands run once on an empty data folder, before the first start.
    emptied: its command once its data was removed, () = the same.
    """

    argv: tuple[str, ...]
    version: str = ""
    env: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    prepare: tuple[tuple[str, ...], ...] = ()
    emptied: tuple[str, ...] = ()


class LocalPlace(msgspec.Struct, frozen=True, kw_only=True):
    """What a local process may need to know of the others.

    ports: node -> purpose ("client" and those of ``Local.ports``) -> port on 127.0.0.1.
    data: node -> its folder.  options: settled.  binaries: as ``Local.find`` gave them.
    """

    ports: Mapping[str, Mapping[str, int]]
    data: Mapping[str, Path]
    options: Mapping[str, str]
    binaries: Mapping[str, Binary]


def image_option(
    family: str, says: str = "e.g. an official one, instead of the built one"
) -> Option:
    """The option ``image`` of the backends of one kind of server."""
    variable = f"LOCKHAVOC_IMAGE_{family.upper()}"
    return Option(
        default="",
        runtimes=("docker",),
        env=variable,
        says=f"another image for the servers, {says} (or the variable {variable})",
    )


def nothing_to_fetch() -> None:
    """For servers that are here or are not."""


class Local(msgspec.Struct, frozen=True, kw_only=True):
    """How a backend runs as local processes.

    find: its binaries by name, RefusedError with the fix if one is missing.
    program: (name of the node, place) -> LocalProgram.  ports: purposes besides "client".
    says: what it needs, for the reference.  by_wheel: do wheels of the extra ``process`` bring it?
    fetch: gets what ``find`` names and is not here yet, once, before the first start.
    Between local servers there are no proxies, so faults on links between nodes are refused there.
    """

    find: Callable[[], Mapping[str, Binary]]
    program: Callable[[str, LocalPlace], LocalProgram]
    says: str
    ports: tuple[str, ...] = ()
    by_wheel: bool = True
    fetch: Callable[[], None] = nothing_to_fetch


def no_args(options: Mapping[str, str]) -> Sequence[str]:
    """For servers whose settings stand in their Compose file alone."""
    return ()


def no_env(options: Mapping[str, str]) -> Mapping[str, str]:
    """For Compose files that need no more than the runtime gives them."""
    return {}


def no_lack(nodes: Mapping[str, Node]) -> str:
    """For backends whose nodes are ready when the cluster is."""
    return ""


class BackendSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One backend.

    name: as in scenarios.  family: what its servers speak, as in ``compose.registry.FAMILIES``.
    nodes: its servers.  local: how it runs as local processes; or local_refused: why it cannot.
    compose_file: below compose/files.  image: folder below compose/images.
    releases: Debian releases that package the server; others maps a release to why it is refused.
    options: names -> Option.  server_args: settled options -> arguments of the server binary
    that hold in both runtimes (persistence and the like; no address, port or directory).
    compose_env: settled options -> further variables of its Compose file.
    emptied_env: those that change for a node once its data was removed; "_NODE" ends their names.
    programs: commands that must succeed in an image that the user names, the server's first; what
    the Compose file executes.  image_advice: what to take instead of one that does not fit.
    no_primary: why no node can be called the primary, "" if one can.
    ask_primary: names it, where its nodes' own word (``role`` and ``term``) would not do.
    formed: "" if the nodes have found each other, else what is missing; waited for at the start.
    """

    name: str
    family: str
    nodes: tuple[NodeSpec, ...]
    compose_file: str
    image: str
    releases: tuple[str, ...]
    releases_refused: Mapping[str, str]
    options: Mapping[str, Option]
    server_args: Callable[[Mapping[str, str]], Sequence[str]] = no_args
    compose_env: Callable[[Mapping[str, str]], Mapping[str, str]] = no_env
    emptied_env: Mapping[str, str] = {}
    programs: tuple[tuple[str, ...], ...] = ()
    image_advice: str = "leave it out to build from Debian's packages"
    local: Local | None = None
    local_refused: str = ""
    no_primary: str = ""
    ask_primary: Callable[[Mapping[str, Node]], str] | None = None
    formed: Callable[[Mapping[str, Node]], str] = no_lack

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes)

    @property
    def voters(self) -> tuple[str, ...]:
        """Nodes whose majority decides."""
        return tuple(node.name for node in self.nodes if node.votes)

    @property
    def has_peers(self) -> bool:
        """Do its nodes dial each other (through proxies of their own)?"""
        return any(node.peer_ports for node in self.nodes)

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
