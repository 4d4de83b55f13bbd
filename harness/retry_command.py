"""``lockhavoc retry``: one decision on stdin's context, and what was recorded of many.

stdout carries the result only (one JSON object for ``decide``); notes go to stderr.
"""

from __future__ import annotations

import json
import shlex
from typing import BinaryIO

import click

from harness.core.errors import RefusedError, UserError
from harness.core.limits import RETRY_CONTEXT_BYTES_MAX


@click.group("retry")
def retry() -> None:
    """Decides whether a refused lock attempt is retried, escalated or abandoned.

    \b
    Examples:
      lockhavoc retry decide < context.json
      lockhavoc schema retry-context
    """


@retry.command("decide")
@click.option(
    "--decider",
    type=click.Choice(["rules", "command", "llm"]),
    default="rules",
    show_default=True,
    help="Who decides; the bounds bind all of them.",
)
@click.option("--command", "command_line", help="The program of --decider command, no shell.")
@click.option(
    "--timeout-s",
    type=click.FloatRange(0.01, 600),
    default=5.0,
    show_default=True,
    help="Of each of its at most two calls; its whole process group ends with it.",
)
@click.option("--pass-env", multiple=True, metavar="NAME", help="A variable that it gets too.")
@click.argument("context", type=click.File("rb"), default="-")
def decide_command(
    decider: str,
    command_line: str | None,
    timeout_s: float,
    pass_env: tuple[str, ...],
    context: BinaryIO,
) -> int:
    """Reads a CONTEXT (JSON, default: stdin) and prints the decision.

    \b
    Examples:
      lockhavoc retry decide < context.json
      lockhavoc retry decide --decider command --command './decider --fast' < context.json
    """
    from clients.retry.gate import ask
    from clients.retry.model import read_context
    from clients.retry.program import Program
    from clients.retry.rules import decide

    argv = _argv(decider, command_line)
    read = read_context(context.read(RETRY_CONTEXT_BYTES_MAX + 1))
    if argv is None:
        decision = decide(read)
    else:
        asked = ask(read, Program(argv, timeout_s, pass_env))
        decision = asked.decision
        for note in asked.notes:
            click.echo(f"lockhavoc: {note}", err=True)
    click.echo(json.dumps(decision.as_dict()))
    return 0


def _argv(decider: str, command_line: str | None) -> list[str] | None:
    if decider == "llm":
        raise RefusedError(
            "--decider llm: no model client is part of this version; call the model in a program"
            " of yours and give it as --decider command --command 'PROG ARGS'"
        )
    if decider == "rules":
        if command_line is not None:
            raise UserError("--command goes with --decider command, not with --decider rules")
        return None
    try:
        argv = shlex.split(command_line or "")
    except ValueError as error:
        raise UserError(f"--command {command_line!r}: {error}; check its quotes") from error
    if not argv:
        raise UserError("--decider command needs the program: --command 'PROG ARGS'")
    return argv
