"""Options of a command that say which version of the library runs.

    @library_options
    def command(choice: Chosen, ...): ...

Trap: every command imports this, so it brings in nothing but click.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What the command line says of the library, as it was typed."""

    with_: tuple[str, ...] = ()
    python: str | None = None
    wheel: str | None = None
    adapter: str | None = None
    fixed: bool = False

    def words(self) -> list[str]:
        """The same options again, for the line that repeats a run."""
        words = [word for text in self.with_ for word in ("--with", shlex.quote(text))]
        for name in ("python", "wheel", "adapter"):
            value = getattr(self, name)
            words += [] if value is None else [f"--{name}", shlex.quote(value)]
        return [*words, "--fixed"] if self.fixed else words


NOTHING = Chosen()


def library_options(command: Command) -> Command:
    """Adds --with, --python, --wheel, --adapter and --fixed, handed over as one ``choice``."""

    def packed(**options: Any) -> Any:
        names = ("with_", "python", "wheel", "adapter", "fixed")
        choice = Chosen(**{name: options.pop(name) for name in names})
        return command(choice=choice, **options)

    packed.__name__, packed.__doc__ = command.__name__, command.__doc__
    packed.__click_params__ = list(  # type: ignore[attr-defined]  # where click keeps them
        getattr(command, "__click_params__", [])
    )
    for option in reversed(_OPTIONS):
        option(packed)
    return packed  # type: ignore[return-value]  # what click makes a command of


_OPTIONS = (
    click.option(
        "--with",
        "with_",
        multiple=True,
        metavar="REQUIREMENT",
        help="Version to test instead of the pinned one, as redis-py==5.0.0; repeatable.",
    ),
    click.option("--wheel", metavar="FILE", help="Wheel to test instead of the released library."),
    click.option(
        "--python", metavar="PATH", help="Interpreter to use as it is, as .venv/bin/python."
    ),
    click.option(
        "--adapter",
        metavar="FILE",
        help="Your own adapter (docs/how-to/own-library.md), run instead of a known library.",
    ),
    click.option(
        "--fixed",
        is_flag=True,
        help="Of a scenario of the museum: the version without the defect, which must hold.",
    ),
)
