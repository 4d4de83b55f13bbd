"""The command line, ``lockhavoc run | check | audit | serve | heal | doctor | plan | retry | ...``.

Results go to stdout, everything else to stderr; ``--json`` prints exactly one JSON document.
Exit codes: 0 as claimed, 1 violation (wins over all others), 2 unknown or vacuous, 254 usage,
255 harness failure, 130 interrupted.  Heavy modules are imported in the command that needs them.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from harness.core.errors import EXIT_HARNESS, EXIT_INTERRUPTED, EXIT_USAGE, LockhavocError
from harness.library_options import Chosen, library_options
from harness.retry_command import retry
from harness.run_options import runtime_option, store_option

VERSION = "0.1.0"
SCHEMAS = [
    "scenario", "history", "verdict", "results", "audit", "retry-context", "retry-decision",
]  # fmt: skip


# Commands in files of their own, which bring a lot with them: loaded when they are asked for.
_LAZY = {
    "audit": "harness.audit_command:audit_command",
    "backend": "harness.backend_command:backend_command",
    "check": "harness.judge_file:check_file",
    "compare": "harness.verify.command:compare_command",
    "survey": "harness.verify.survey_command:survey_command",
    "verify": "harness.verify.command:verify_command",
    "worker": "harness.worker_command:worker",
}


class LazyGroup(click.Group):
    """Loads the commands of ``_LAZY`` when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_LAZY])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _LAZY:
            return super().get_command(ctx, cmd_name)
        module, _, name = _LAZY[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  lockhavoc doctor
  lockhavoc run scenarios/redis/holder-pause.toml
  lockhavoc run scenarios/redis/holder-pause.toml --seed 7 --runtime process
  lockhavoc check store/latest
  lockhavoc check history.jsonl --model mutex
  lockhavoc heal
""",
)
@click.version_option(VERSION, prog_name="lockhavoc")
def cli() -> None:
    """Tells you whether your distributed lock holds."""


@cli.command("run")
@click.argument("scenarios", nargs=-1, required=True, type=click.Path(path_type=Path))
@library_options
@runtime_option
@click.option("--seed", type=click.IntRange(0), help="Repeats the choices of an earlier run.")
@click.option("--repeat", type=click.IntRange(1, 10_000), default=1, help="Runs, with seeds +1.")
@store_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@click.option(
    "--summary",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Appends a Markdown summary of all runs, such as to $GITHUB_STEP_SUMMARY.",
)
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Writes one JUnit file for all runs.",
)
def run_command(
    choice: Chosen,
    scenarios: Sequence[Path],
    runtime: str,
    seed: int | None,
    repeat: int,
    store_dir: Path,
    as_json: bool,
    quiet: bool,
    summary: Path | None,
    junit: Path | None,
) -> int:
    """Runs SCENARIOS (TOML files, or the plan.json of an earlier run) and judges each.

    \b
    Examples:
      lockhavoc run scenarios/demo/*.toml
      lockhavoc run scenarios/redis/holder-pause.toml --repeat 20
      lockhavoc run scenarios/redis/*.toml --with redis-py==5.0.0
      lockhavoc run store/latest/plan.json
    """
    from harness.campaign import Outputs, run_all

    return run_all(
        scenarios,
        runtime=runtime,
        seed=seed,
        repeat=repeat,
        store_dir=store_dir,
        as_json=as_json,
        quiet=quiet,
        argv=sys.argv[1:],
        outputs=Outputs(summary=summary, junit=junit),
        choice=choice,
    )


@cli.command("plan")
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def plan_command(scenario: Path, seed: int) -> int:
    """Checks SCENARIO and prints the plan that a seed draws from it, without running anything.

    \b
    Example:
      lockhavoc plan scenarios/redis/holder-pause.toml --seed 7
    """
    from harness import plan as plans
    from harness.scenario import load

    click.echo(plans.dump(plans.draw(load(scenario), seed)).decode(), nl=False)
    return 0


@cli.command("heal")
@click.argument("run_dir", required=False, type=click.Path(path_type=Path))
@click.option("--store", type=click.Path(path_type=Path), default=Path("store"), show_default=True)
def heal_command(run_dir: Path | None, store: Path) -> int:
    """Undoes what dead runs left behind: RUN_DIR, or every run in the store.

    A run whose harness still lives is left alone.

    \b
    Examples:
      lockhavoc heal
      lockhavoc heal store/redis-holder-pause/20261130T120000.000Z
    """
    from harness.healing import heal_runs

    return heal_runs(run_dir, store)


@cli.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def doctor_command(as_json: bool) -> int:
    """Says what can be done on this machine, and why the rest cannot.

    \b
    Example:
      lockhavoc doctor
    """
    from harness.doctor import show

    return show(as_json=as_json)


@cli.command("faults")
@click.option("--backend", help="Only this backend.")
@click.option("--runtime", type=click.Choice(["docker", "process", "sim"]), help="Only this one.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def faults_command(backend: str | None, runtime: str | None, as_json: bool) -> int:
    """Says which fault can be done on which backend, and why not; starts nothing.

    \b
    Examples:
      lockhavoc faults
      lockhavoc faults --backend valkey-single --runtime process
    """
    from harness.faults_table import show

    return show(backend=backend, runtime=runtime, as_json=as_json)


@cli.command("serve")
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("store"),
    envvar="LOCKHAVOC_STORE",
    show_default=True,
    help="Where runs are kept.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=8642, show_default=True)
def serve_command(store: Path, port: int) -> int:
    """Shows the stored runs in a browser, on 127.0.0.1 only.

    \b
    Examples:
      lockhavoc serve
      lockhavoc serve --store store --port 0
    """
    from harness.serve import serve

    return serve(store, port=port)


@cli.command("schema")
@click.argument("name", type=click.Choice(SCHEMAS))
def schema_command(name: str) -> int:
    """Prints the JSON Schema of a format.

    \b
    Example:
      lockhavoc schema scenario > scenario.schema.json
    """
    click.echo(json.dumps(_schema(name), indent=2))
    return 0


def _schema(name: str) -> dict[str, Any]:
    if name == "scenario":
        from harness.scenario import json_schema

        return json_schema()
    from harness.schema_export import schema

    return schema(name)


cli.add_command(retry)


def main() -> None:
    """Entry point: maps outcomes to exit codes."""
    sys.exit(_run())


def _run() -> int:
    from harness.interrupts import Interrupted

    try:
        value = cli.main(standalone_mode=False)
        return value if isinstance(value, int) else 0
    except click.UsageError as error:
        error.show()
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt, Interrupted):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        error.show()
        return EXIT_HARNESS
    except LockhavocError as error:
        click.echo(f"lockhavoc: {error}", err=True)
        return error.exit_code
    except BrokenPipeError:
        return EXIT_HARNESS
    except Exception:
        click.echo("lockhavoc: a bug in the harness; please report it with this:", err=True)
        click.echo(traceback.format_exc(), err=True)
        return EXIT_HARNESS


if __name__ == "__main__":
    main()
