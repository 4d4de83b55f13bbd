"""Options that every command which runs scenarios has, with one name and one meaning."""

from __future__ import annotations

from pathlib import Path

import click

store_option = click.option(
    "--store",
    "store_dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("store"),
    envvar="LOCKHAVOC_STORE",
    show_default=True,
    help="Where runs are kept.",
)
runtime_option = click.option(
    "--runtime",
    type=click.Choice(["auto", "docker", "process", "sim"]),
    default="auto",
    show_default=True,
    help="Where the servers run; auto takes docker if an Engine answers, else process.",
)
