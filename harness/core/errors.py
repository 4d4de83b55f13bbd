"""Errors that a user may see, each with its exit code.

The rule for a message: name the field, the value, the rule it breaks and the fix.
"""

from __future__ import annotations

from collections.abc import Iterable

EXIT_AS_CLAIMED = 0
EXIT_VIOLATION = 1
EXIT_UNKNOWN = 2
EXIT_USAGE = 254
EXIT_HARNESS = 255
EXIT_INTERRUPTED = 130


class LockhavocError(Exception):
    """Base of every error that ends in one clear message instead of a traceback."""

    exit_code = EXIT_HARNESS


class UserError(LockhavocError):
    """The input is wrong: a scenario, a file, an option.  Carries *all* problems found.

    ``problems`` is a tuple of one-line messages; ``str(error)`` joins title and problems.
    """

    exit_code = EXIT_USAGE

    def __init__(self, title: str, problems: Iterable[str] = ()) -> None:
        self.title = title
        self.problems = tuple(problems)
        lines = [title, *(f"  - {problem}" for problem in self.problems)]
        super().__init__("\n".join(lines))


class RefusedError(UserError):
    """Something that was asked for cannot be done here; the title says why (nothing started)."""


class HarnessError(LockhavocError):
    """The harness or its surroundings failed (Engine away, server did not start, disk full)."""

    exit_code = EXIT_HARNESS


class AnsweredError(HarnessError):
    """A server answered, with an error: the way to it is open and nothing was carried out."""
