"""``lockhavoc retry requeue`` and ``retry halts``: what loops have left in a file or in Redis."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.core.errors import HarnessError, UserError

if TYPE_CHECKING:
    from clients.retry.halts import Board
    from clients.retry.record import Request
    from clients.retry.redis_link import Redis

# A URL may hold a password, which the list of processes would show: so the environment will do.
redis_option = click.option(
    "--redis",
    "redis_url",
    metavar="URL",
    envvar="LOCKHAVOC_RETRY_REDIS",
    show_envvar=True,
    help="redis://[[USER]:PASSWORD@]HOST[:PORT][/DB], in place of a file.",
)


def connected(url: str) -> Redis:
    """A server that answers; HarnessError if it does not."""
    from clients.retry.redis_link import Redis, RedisSaid

    redis = Redis(url, timeout_s=5.0)
    try:
        redis.call("PING")
    except (OSError, RedisSaid) as error:
        says = f"{redis!r} cannot be used: {error}; is it up, and the URL right?"
        raise HarnessError(says) from error
    return redis


def _one_place(file: Path | None, redis_url: str | None, name: str) -> str | None:
    """The URL, if no file is named; a file goes before what the environment says."""
    if file is None and not redis_url:
        raise UserError(f"name a file ({name}) or a server (--redis URL)")
    return None if file else redis_url


@click.command("requeue")
@click.option("--lock", "lock_name", help="Only the letters of this lock.")
@redis_option
@click.option("--key", default="dead", show_default=True, help="The list of --redis.")
@click.argument("letters", required=False, type=click.Path(path_type=Path))
def requeue_command(
    lock_name: str | None, redis_url: str | None, key: str, letters: Path | None
) -> int:
    """Prints the requests among the dead LETTERS, one JSON line each, and takes them out.

    \b
    Examples:
      lockhavoc retry requeue dead.jsonl --lock orders >> requests.jsonl
      lockhavoc retry requeue --redis redis://127.0.0.1:6379 --key dead >> requests.jsonl
    """
    from clients.retry.record import requeue
    from clients.retry.sinks import requeue_list

    def give(request: Request) -> None:
        click.echo(json.dumps(asdict(request)))

    url = _one_place(letters, redis_url, "LETTERS")
    if letters is not None:
        given = requeue(letters, give, lock_name)
    else:
        assert url is not None
        with connected(url) as redis:
            given = requeue_list(redis, key, give, lock_name)
    click.echo(f"lockhavoc: {given} request{'' if given == 1 else 's'}", err=True)
    return 0


@click.command("halts")
@click.option("--resolve", "resolved", multiple=True, metavar="CLIENT", help="Lets it go on.")
@click.option("--resolve-all", is_flag=True, help="Lets all of them go on.")
@redis_option
@click.option("--key", help="The hash of --redis.  [default: lockhavoc:retry:halts]")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.argument("file", required=False, type=click.Path(path_type=Path))
def halts_command(
    resolved: tuple[str, ...],
    resolve_all: bool,
    redis_url: str | None,
    key: str | None,
    as_json: bool,
    file: Path | None,
) -> int:
    """Says which clients a deadlock has halted, and lets them go on.

    FILE is what the loops have as FileHalts, --redis what they have as RedisHalts.

    \b
    Examples:
      lockhavoc retry halts orders.halts
      lockhavoc retry halts orders.halts --resolve w1 --resolve w2
      lockhavoc retry halts --redis redis://127.0.0.1:6379 --resolve-all
    """
    from clients.retry.halts import REDIS_KEY, FileHalts, RedisHalts

    if resolved and resolve_all:
        raise UserError("--resolve-all leaves nothing for --resolve; give one of them")
    url = _one_place(file, redis_url, "FILE")
    if file is not None:
        if not file.exists():
            raise UserError(f"{file}: there is no such file; nobody was halted there yet?")
        return _show(FileHalts(file), list(resolved), resolve_all, as_json=as_json)
    assert url is not None
    with connected(url) as redis:
        board = RedisHalts(redis, key or REDIS_KEY)
        return _show(board, list(resolved), resolve_all, as_json=as_json)


def _show(board: Board, resolved: list[str], resolve_all: bool, *, as_json: bool) -> int:
    before = dict(board.all())
    missing = [name for name in resolved if name not in before]
    if missing:
        known = ", ".join(sorted(before)) or "nobody"
        raise UserError(f"--resolve {missing[0]}: is not halted; halted: {known}")
    gone = board.resolve(None if resolve_all else resolved) if resolve_all or resolved else 0
    halted = board.all()
    if as_json:
        click.echo(
            json.dumps({"schema": "lockhavoc.retry-halts/1", "halted": halted, "resolved": gone})
        )
        return 0
    if gone:
        click.echo(f"{gone} may go on")
    for name, why in sorted(halted.items()):
        click.echo(f"{name} is halted: {why}")
    if not halted:
        click.echo("nobody is halted")
    return 0
