"""``lockhavoc retry``: one decision on stdin's context, and what was recorded of many.

stdout carries the result only (one JSON object for ``decide``); notes go to stderr.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import BinaryIO

import click

from harness.core.errors import EXIT_UNKNOWN
from harness.core.limits import RETRY_CONTEXT_BYTES_MAX
from harness.retry_bench import bench_command
from harness.retry_deciders import Chosen, decider_options
from harness.retry_kept import halts_command, requeue_command


@click.group("retry")
def retry() -> None:
    """Decides whether a refused lock attempt is retried, escalated or abandoned.

    \b
    Examples:
      lockhavoc retry decide < context.json
      lockhavoc retry monitor retry.jsonl
      lockhavoc retry bench
      lockhavoc schema retry-context
    """


@retry.command("decide")
@decider_options
@click.argument("context", type=click.File("rb"), default="-")
def decide_command(
    chosen: Chosen,
    context: BinaryIO,
) -> int:
    """Reads a CONTEXT (JSON, default: stdin) and prints the decision.

    \b
    Examples:
      lockhavoc retry decide < context.json
      lockhavoc retry decide --decider command --command './decider --fast' < context.json
      lockhavoc retry decide --decider llm --llm-url http://127.0.0.1:11434/v1 \\
        --llm-model llama3.2 < context.json
    """
    from clients.retry.facts import DEFAULTS
    from clients.retry.model import read_context

    decide = chosen.make()
    asked = decide(read_context(context.read(RETRY_CONTEXT_BYTES_MAX + 1)), DEFAULTS)
    for note in asked.notes:
        click.echo(f"lockhavoc: {note}", err=True)
    click.echo(json.dumps(asked.decision.as_dict()))
    return 0


@retry.command("replay")
@decider_options
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.argument("log", type=click.Path(path_type=Path))
def replay_command(
    chosen: Chosen,
    as_json: bool,
    log: Path,
) -> int:
    """Decides the contexts recorded in LOG again and says what differs.

    Exit code 0, or 2 if the rules differ from what they said or a record was changed.

    \b
    Examples:
      lockhavoc retry replay retry.jsonl
      lockhavoc retry replay retry.jsonl --decider command --command ./decider --json
    """
    from clients.retry.record import read_records
    from clients.retry.replay import replay

    decide = chosen.make()
    found = replay(read_records(log), decide)
    if as_json:
        click.echo(json.dumps(found))
    else:
        click.echo(
            f"{found['same']} the same, {found['different']} different,"
            f" {found['changed']} changed after they were written"
        )
        for one in found["differences"]:
            click.echo(f"  {one['id']}, attempt {one['attempt']}:")
            click.echo(f"    then {json.dumps(one['then'])}")
            click.echo(f"    now  {json.dumps(one['now'])}")
    if found["changed"] or found["drifted"]:
        return EXIT_UNKNOWN
    return 0


@retry.command("monitor")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "prometheus"]),
    default="text",
    show_default=True,
)
@click.argument("logs", nargs=-1, required=True, type=click.Path(path_type=Path))
def monitor_command(form: str, logs: tuple[Path, ...]) -> int:
    """Says per lock who starved, how fair it was, and what looks like a herd or a deadlock.

    \b
    Examples:
      lockhavoc retry monitor retry.jsonl dead.jsonl
      lockhavoc retry monitor retry.jsonl --format prometheus > retry.prom
    """
    from clients.retry.monitor import as_prometheus, as_text, monitor
    from clients.retry.record import read_records

    seen = monitor(record for log in logs for record in read_records(log))
    if form == "prometheus":
        click.echo(as_prometheus(seen), nl=False)
    else:
        click.echo(as_text(seen) if form == "text" else json.dumps(seen))
    return 0


retry.add_command(requeue_command)
retry.add_command(halts_command)
retry.add_command(bench_command)
