"""Options that ``verify`` and ``survey`` have in common."""

from __future__ import annotations

import os

import click

JOBS_MAX = 16  # clusters of servers and workers that run at a time; more fit on no usual machine
JOBS = min(2, os.cpu_count() or 1)

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1, JOBS_MAX),
    default=JOBS,
    show_default="2, or 1 on a machine with one core",
    help="Cells that run at a time, each in a process of its own.",
)
