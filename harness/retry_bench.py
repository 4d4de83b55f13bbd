"""``lockhavoc retry bench``: the policies side by side, in virtual time or on a real server."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.core.errors import HarnessError, RefusedError, UserError
from harness.retry_kept import connected

if TYPE_CHECKING:
    from clients.retry.bench_live import LiveSetup

Restart = Callable[[], object]


@click.command("bench")
@click.option("--seeds", type=click.IntRange(1, 1_000), help="[default: 20; 1 on a real server]")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The first.")
@click.option(
    "--waiters", type=click.IntRange(1, 2_000), help="[default: 100; 40 on a real server]"
)
@click.option(
    "--floor-ms",
    type=click.IntRange(1, 1_000),
    default=50,
    show_default=True,
    help="The rules ask no more often than this.",
)
@click.option("--policy", "policies", multiple=True, metavar="NAME", help="Only this one; again.")
@click.option(
    "--backend",
    type=click.Choice(["redis-single", "valkey-single"]),
    help="Starts this server and restarts it in the middle.",
)
@click.option(
    "--runtime",
    type=click.Choice(["auto", "process", "docker"]),
    default="auto",
    show_default=True,
    help="How --backend is started.",
)
@click.option("--url", metavar="URL", help="A server of yours, redis://...; it is not restarted.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def bench_command(
    seeds: int | None,
    seed: int,
    waiters: int | None,
    floor_ms: int,
    policies: tuple[str, ...],
    backend: str | None,
    runtime: str,
    url: str | None,
    as_json: bool,
) -> int:
    """Compares the rules with the usual back-off policies on one contended lock.

    In virtual time the lock's service restarts in the middle, and the table is the mean over all
    seeds.  With --backend or --url real clients contend for a real lock: takes about a minute.

    \b
    Examples:
      lockhavoc retry bench --seeds 5 --waiters 30
      lockhavoc retry bench --backend redis-single --waiters 20
      lockhavoc retry bench --url redis://127.0.0.1:6379 --policy rules --policy redis-py
    """
    from clients.retry.bench import NAMES, as_markdown

    unknown = [name for name in policies if name not in NAMES]
    if unknown:
        raise UserError(f"--policy {unknown[0]!r}: unknown; the policies are: {'; '.join(NAMES)}")
    if backend and url:
        raise UserError("--backend starts a server and --url names one; give one of them")
    chosen = policies or NAMES
    if not backend and not url:
        found = _simulated(waiters or 100, seeds or 20, seed, floor_ms, chosen)
    else:
        from clients.retry.bench_live import LiveSetup

        setup = LiveSetup(waiters=waiters or 40, floor_ms=floor_ms)
        place = _started(backend, runtime) if backend else _named(url or "")
        with place as (address, restart, where):
            found = _live(address, restart, where, setup, range(seed, seed + (seeds or 1)), chosen)
    if as_json:
        click.echo(json.dumps(found))
    else:
        click.echo(as_markdown(found))
        click.echo(f"\n{found['says']}")
    return 0


def _simulated(
    waiters: int, seeds: int, seed: int, floor_ms: int, policies: Sequence[str]
) -> dict[str, Any]:
    from clients.retry.bench import Setup, compare, decisions_per_second

    found = compare(Setup(waiters=waiters, floor_ms=floor_ms), seeds, seed, policies)
    found["decisions_per_second"] = round(decisions_per_second())
    speed = f"{found['decisions_per_second']:,} rule decisions in a second of processor time"
    found["says"] = f"{_count(seeds, 'seed')} from {seed}, in virtual time; {speed}"
    return found


def _live(
    url: str,
    restart: Restart | None,
    where: str,
    setup: LiveSetup,
    seeds: Sequence[int],
    policies: Sequence[str],
) -> dict[str, Any]:
    from clients.retry.bench import mean
    from clients.retry.bench_live import contend

    rows = []
    for policy in policies:
        click.echo(f"lockhavoc: {policy}", err=True)
        try:
            rows.append(mean(policy, [contend(url, policy, setup, s, restart) for s in seeds]))
        except RuntimeError as error:
            raise HarnessError(str(error)) from error
    says = f"{where}, {_count(len(seeds), 'seed')} from {seeds[0]}, "
    says += _count(setup.waiters, "client")
    says += ", restarted after a third of the holds" if restart else ", not restarted"
    return {
        "schema": "lockhavoc.retry-bench/1", "seed": seeds[0], "seeds": len(seeds),
        "server": where, "setup": asdict(setup), "rows": rows, "says": says,
    }  # fmt: skip


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


@contextmanager
def _named(url: str) -> Iterator[tuple[str, Restart | None, str]]:
    with connected(url) as redis:
        where = f"{redis.host}:{redis.port}"
    yield url, None, where


@contextmanager
def _started(backend: str, runtime: str) -> Iterator[tuple[str, Restart, str]]:
    """The server's address, its restart and its name; it is gone afterwards."""
    from compose import doctor
    from harness.core.clock import MonotonicClock
    from harness.ledger import FileLedger
    from harness.registries import RUNTIMES

    chosen = doctor.choose(runtime, backend)
    live = RUNTIMES.load(chosen)()
    reason = live.can(backend)
    if reason:
        raise RefusedError(f"--backend {backend} cannot run here", [reason])
    with tempfile.TemporaryDirectory(prefix="lockhavoc-bench-") as folder:
        clock = MonotonicClock()
        ledger = FileLedger(Path(folder), clock, start_ns=clock.now())
        try:
            cluster = live.up(backend, {}, workers=1, run_dir=Path(folder), ledger=ledger)
            try:
                node = cluster.nodes[cluster.primary()]
                end = cluster.endpoints(0)[0]

                def restart() -> None:
                    node.kill()
                    node.start()

                where = f"{backend} ({chosen})"
                yield f"redis://{end['host']}:{end['port']}", restart, where
            finally:
                cluster.down()
        finally:
            ledger.keep_all()
            ledger.close()
