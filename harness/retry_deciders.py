"""Options that choose who decides on a refused attempt, and the decider that they make.

@retry.command("decide")
@decider_options
def decide_command(chosen: Chosen, ...) -> int: ...
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from harness.core.errors import UserError

if TYPE_CHECKING:
    from clients.retry.facts import Settings
    from clients.retry.gate import Asked, Outside
    from clients.retry.model import Context
    from clients.retry.replay import Decide

FIELDS = (
    "decider", "command_line", "timeout_s", "pass_env",
    "llm_url", "llm_model", "llm_large_model", "llm_key_env",
)  # fmt: skip
OPTIONS = (
    click.option(
        "--llm-key-env",
        metavar="NAME",
        help="The variable of the environment that holds the service's key.",
    ),
    click.option("--llm-large-model", metavar="NAME", help="Where there are wait-for pairs."),
    click.option("--llm-model", metavar="NAME", envvar="LOCKHAVOC_LLM_MODEL", show_envvar=True),
    click.option(
        "--llm-url",
        metavar="URL",
        envvar="LOCKHAVOC_LLM_URL",
        show_envvar=True,
        help="Base of a chat-completions service, such as http://127.0.0.1:11434/v1.",
    ),
    click.option("--pass-env", multiple=True, metavar="NAME", help="A variable that PROG gets."),
    click.option(
        "--timeout-s",
        type=click.FloatRange(0.01, 600),
        default=5.0,
        show_default=True,
        help="Of each of its at most two calls; then a program's whole process group is killed.",
    ),
    click.option(
        "--command", "command_line", metavar="'PROG ARGS'", help="The program of --decider command."
    ),
    click.option(
        "--decider",
        type=click.Choice(["rules", "command", "llm"]),
        default="rules",
        show_default=True,
        help="Who decides; the bounds bind all of them.",
    ),
)


@dataclass(frozen=True)
class Chosen:
    """What the options said."""

    decider: str
    command_line: str | None
    timeout_s: float
    pass_env: tuple[str, ...]
    llm_url: str | None
    llm_model: str | None
    llm_large_model: str | None
    llm_key_env: str | None

    def make(self) -> Decide:
        """The decider; UserError where options are missing or do not go together."""
        from clients.retry.program import Program
        from clients.retry.waiting import rules

        self._fit()
        if self.decider == "rules":
            return rules
        if self.decider == "llm":
            return self._model()
        program = Program(_argv(self.command_line), self.timeout_s, self.pass_env)
        return partial(_asked, program)

    def _fit(self) -> None:
        # A URL or model in the environment waits there until it is asked for.
        for option, value, owner in (
            ("--command", self.command_line, "command"),
            ("--pass-env", self.pass_env, "command"),
            ("--llm-large-model", self.llm_large_model, "llm"),
            ("--llm-key-env", self.llm_key_env, "llm"),
        ):
            if value and self.decider != owner:
                raise UserError(f"{option} goes with --decider {owner}, not with {self.decider}")

    def _model(self) -> Decide:
        from clients.retry.chat import Chat

        if not self.llm_url or not self.llm_model:
            raise UserError(
                "--decider llm needs --llm-url URL and --llm-model NAME (or LOCKHAVOC_LLM_URL and"
                " LOCKHAVOC_LLM_MODEL): no model is asked that you did not name"
            )
        key = None
        if self.llm_key_env:
            key = os.environ.get(self.llm_key_env, "").strip()
            if not key:
                raise UserError(f"--llm-key-env {self.llm_key_env}: this variable is not set")
        chat = Chat(
            self.llm_url,
            self.llm_model,
            large_model=self.llm_large_model,
            key=key,
            timeout_s=self.timeout_s,
        )
        return partial(_asked, chat)


def _asked(outside: Outside, context: Context, settings: Settings) -> Asked:
    from clients.retry.gate import ask

    return ask(context, outside, settings)


def _argv(command_line: str | None) -> list[str]:
    try:
        argv = shlex.split(command_line or "")
    except ValueError as error:
        raise UserError(f"--command {command_line!r}: {error}; check its quotes") from error
    if not argv:
        raise UserError("--decider command needs the program: --command 'PROG ARGS'")
    return argv


def decider_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the options to a command, which gets them as ``chosen``."""

    @wraps(command)
    def chosen(**options: Any) -> int:
        taken = {name: options.pop(name) for name in FIELDS}
        return command(chosen=Chosen(**taken), **options)

    for option in OPTIONS:
        chosen = option(chosen)
    return chosen
