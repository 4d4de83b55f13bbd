"""``lockhavoc backend``: real servers behind a proxy for as long as somebody holds its stdin.

    $ lockhavoc backend redis-single
    {"event":"ready","backend":"redis-single","nodes":[{"name":"redis","host":...,"port":...}],...}
    -> {"id":1,"do":"sever"}                <- {"id":1,"ok":true}

For tests of lock code in any language (the pytest plugin is one caller).  JSON lines, one request
at a time; the end of input or a signal takes everything down.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.core.errors import LockhavocError, UserError

if TYPE_CHECKING:
    from harness.core.protocols import Cluster, Link, Node


@click.command("backend")
@click.option(
    "--runtime",
    type=click.Choice(["process", "docker"]),
    default="process",
    show_default=True,
    help="Where the servers run.",
)
@click.argument("name")
def backend_command(runtime: str, name: str) -> int:
    """Runs the backend NAME behind a proxy until its input ends, for tests of your own.

    The first line on stdout says where to connect.  Then each line on stdin is one request, such as
    {"id":1,"do":"sever"}; "do" is sever, mute, latency (with "ms"), pause, resume, kill or start
    (these four with "node", default: all), or heal, which undoes all of it.

    \b
    Examples:
      lockhavoc backend redis-single < /dev/null
      mkfifo in; lockhavoc backend etcd3 < in
    """
    from harness.interrupts import interruptible
    from harness.running_backend import running_backend

    def tell(text: str) -> None:
        click.echo(text, err=True)

    with (
        interruptible(),
        tempfile.TemporaryDirectory(prefix="lockhavoc-backend-") as folder,
        running_backend(name, runtime, Path(folder), clients=1, tell=tell) as cluster,
    ):
        _say(
            {
                "event": "ready",
                "backend": name,
                "runtime": runtime,
                "nodes": [dict(node) for node in cluster.endpoints(0)],
                "versions": dict(cluster.versions),
            }
        )
        _serve(cluster)
    return 0


def _serve(cluster: Cluster) -> None:
    for line in sys.stdin:
        reply: dict[str, Any] = {"id": None, "ok": True}
        try:
            asked = json.loads(line)
            if not isinstance(asked, dict):
                raise UserError('a request is a JSON object such as {"id":1,"do":"sever"}')
            reply["id"] = asked.get("id")
            _do(cluster, asked)
        except (LockhavocError, ValueError) as error:
            reply |= {"ok": False, "error": str(error)}
        _say(reply)


def _do(cluster: Cluster, asked: Mapping[str, Any]) -> None:
    links = [link for link in cluster.links if link.src == "w0"]
    if asked.get("do") == "heal":
        _heal(cluster, links)
        return
    on_links = {"sever": _sever, "mute": _mute, "latency": _latency}
    on_nodes: dict[str, Callable[[Node], None]] = {
        "pause": lambda node: node.pause(),
        "resume": lambda node: node.resume(),
        "kill": lambda node: node.kill(),
        "start": lambda node: node.start(),
    }
    do = asked.get("do")
    if do in on_links:
        for link in links:
            on_links[do](link, asked)
    elif do in on_nodes:
        name = asked.get("node")
        if name is not None and name not in cluster.nodes:
            raise UserError(f"node is {name!r}; it must be one of {', '.join(cluster.nodes)}")
        for node in cluster.nodes.values() if name is None else [cluster.nodes[name]]:
            on_nodes[do](node)
    else:
        raise UserError(
            f"do is {do!r}; it must be one of {', '.join([*on_links, *on_nodes])}, heal"
        )


def _sever(link: Link, _: Mapping[str, Any]) -> None:
    link.set_enabled(False)


def _mute(link: Link, _: Mapping[str, Any]) -> None:
    link.remove_toxic("timeout", "downstream")
    link.add_toxic("timeout", "downstream", {"timeout": 0})


def _latency(link: Link, asked: Mapping[str, Any]) -> None:
    ms = asked.get("ms")
    if type(ms) is not int or not 0 <= ms <= 600_000:
        raise UserError(f"ms is {ms!r}; latency needs a whole number of ms up to 600000")
    link.remove_toxic("latency", "downstream")
    link.add_toxic("latency", "downstream", {"latency": ms, "jitter": 0})


def _heal(cluster: Cluster, links: list[Link]) -> None:
    for node in cluster.nodes.values():
        state = node.status().state
        if state == "paused":
            node.resume()
        elif state == "dead":
            node.start()
    for link in links:
        link.clear()


def _say(message: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
