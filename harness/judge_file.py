"""``lockhavoc check FILE --model M``: judge a recorded history, whoever recorded it.

    lockhavoc check history.jsonl --model mutex
    lockhavoc check history.edn.gz --model lease --ttl-ms 10000 --json

No run directory, no Docker, no harness: a file goes in, a verdict comes out.  Exit codes: 0 legal,
1 violation, 2 unknown (or nothing to judge), 254 for a malformed file or a wrong option.

Long files of JSON lines are judged in a stream (``checkers.long``), others are loaded.

Traps: with ``--json`` stdout has exactly one document and nothing else; everything about usage
goes to stderr.  ``--initial`` is read as JSON where it is JSON (``--initial 0`` is a number),
else as a string.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from checkers import api
from checkers.interchange import (
    FORMATS,
    JsonlReader,
    detect_format,
    locate,
    read_history,
    write_edn,
    write_porcupine,
)
from checkers.long import ALL_LOCKS, all_locks, is_long, judge_long, lines_of
from checkers.orders import legal_orders
from checkers.properties import ENGINES, properties
from harness.core.errors import UserError
from harness.core.history import History
from harness.core.limits import ENGINE_BUDGET_S
from harness.core.result import Result
from harness.report.escape import mask_all
from harness.report.verdict import EXIT_CODES, VerdictDocument, lines_in, of_result, render


def judge_file(path: str | Path, model: str, **options: Any) -> tuple[Result, int]:
    """Reads the file, judges it, writes the exports: (result, exit code).

    options: format, independent, export_porcupine, export_edn, and those of
    ``checkers.check_model`` (ttl_ms, k, initial, engine, budget_s, explain ...).
    """
    result, _ = _judge(locate(path), model, **options)
    return result, EXIT_CODES[result.valid]


def _judge(
    path: Path,
    model: str,
    *,
    format: str = "auto",
    independent: bool = False,
    export_porcupine: str | Path | None = None,
    export_edn: str | Path | None = None,
    **options: Any,
) -> tuple[Result, Mapping[int, int | None]]:
    """The result, and the lines of the events that it names."""
    # The name before the file: a typo need not wait for a million lines.
    name = model if model == ALL_LOCKS else api.model_name(model)
    kind = detect_format(path) if format == "auto" else format
    if name == ALL_LOCKS and kind != "jsonl":
        raise UserError(f"{ALL_LOCKS} reads JSON lines in a stream, {path.name} is {kind}")
    exports = export_porcupine is not None or export_edn is not None
    if kind == "jsonl" and not exports:
        long = _stream(path, name, **options)
        if long is not None:
            found = {index for anomaly in long.anomalies for index in anomaly.ops}
            return long, lines_of(path, found)
    elif name == ALL_LOCKS:
        raise UserError(f"{ALL_LOCKS} keeps no history that could be exported; choose one model")
    history = read_history(path, format=format, independent=independent)
    result = api.check_model(history, name, **options)
    if export_porcupine is not None:
        write_porcupine(
            history,
            Path(export_porcupine),
            linearizations=_orders(history, name, options),
            anomalies=result.anomalies,
        )
    if export_edn is not None:
        write_edn(history.ops, Path(export_edn), history.header)
    return result, lines_in(history, result.anomalies)


def _stream(path: Path, name: str, **options: Any) -> Result | None:
    """The verdict by the online monitors, or None where the file is short or they cannot decide."""
    if name != ALL_LOCKS and (options.get("engine", "auto") != "auto" or not is_long(path)):
        return None
    reader = JsonlReader(path)
    next(iter(reader), None)  # the header is known after the first event
    head = History([], reader.header)
    if name == ALL_LOCKS:
        # Of the options only those of leases matter; the others are refused as usual.
        settings = api.settings_of("lease", head, **options)
        return all_locks(path, ttl_ns=settings.ttl_ns, drift_ppm=settings.drift_ppm)
    settings = api.settings_of(name, head, **options)
    return judge_long(path, name, settings, explain=options.get("explain", True))


def _orders(history: History, name: str, options: Mapping[str, Any]) -> dict[str | None, Any]:
    """Orders for the viewer, by the first property of the model (belief has no order)."""
    prop = properties(name, api.settings_of(name, history, **options))[0]
    return {} if prop.model is None else legal_orders(history, prop.model, prop.options)


def document(
    result: Result, lines: Mapping[int, int | None], *, file: str, model: str
) -> VerdictDocument:
    """The JSON document, without secrets."""
    found = of_result(result, file=file, model=model, lines=lines)
    return msgspec.convert(mask_all(msgspec.to_builtins(found)), VerdictDocument)


def _json_or_text(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """``0`` is a number, ``abc`` a string, ``null`` is null (as if the option were not there)."""
    del ctx, param
    try:
        return None if value is None else json.loads(value)
    except ValueError:
        return value


@click.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--model",
    help=f"What a history should be: {', '.join([*api.MODEL_NAMES, ALL_LOCKS])}.",
)
@click.option("--ttl-ms", type=float, help="Length of the lease (lease, belief).")
@click.option("--k", type=int, help="Permits (semaphore).")
@click.option(
    "--initial", callback=_json_or_text, help="First value of a register (cas), JSON or text."
)
@click.option("--drift-ppm", type=click.IntRange(0, 999_999), default=0, help="Clock-rate error.")
@click.option("--judge-busy", is_flag=True, help="An answer 'busy' claims that somebody held.")
@click.option(
    "--format",
    type=click.Choice(["auto", *FORMATS]),
    default="auto",
    show_default=True,
    help="By suffix and content, if not given.",
)
@click.option("--independent", is_flag=True, help="Jepsen values [k v] are a key and its value.")
@click.option("--engine", type=click.Choice(ENGINES), default="auto", show_default=True)
@click.option(
    "--budget-s",
    type=click.FloatRange(0),
    default=ENGINE_BUDGET_S,
    show_default=True,
    help="Time for searches, where the fast monitor cannot decide.",
)
@click.option("--explain/--no-explain", default=True, help="Minimise and draw violations.")
@click.option(
    "--export-porcupine",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write data for Porcupine's viewer.",
)
@click.option(
    "--export-edn", type=click.Path(dir_okay=False, path_type=Path), help="Write Jepsen's EDN."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def check_file(file: Path, model: str | None, as_json: bool, **options: Any) -> int:
    """Judges FILE: a stored run, or a history by a model.

    A run is a directory of the store; all checkers judge it again, no server is needed.  A history
    is a file (JSON lines, Jepsen's EDN, Parquet; .gz too) and needs --model.

    \b
    Examples:
      lockhavoc check store/latest
      lockhavoc check history.jsonl --model mutex
      lockhavoc check history.edn --model lease --ttl-ms 10000 --json
    """
    if model is None:
        if file.is_dir():
            from harness.judge_run import show_run  # half a second of imports, for runs only

            return show_run(file, as_json=as_json)
        raise click.UsageError(
            f"{file} is no run directory, and a history needs --model "
            f"(one of: {', '.join(api.MODEL_NAMES)})"
        )
    path = locate(file)
    result, lines = _judge(path, model, **options)
    verdict = document(result, lines, file=str(path), model=result.checker)
    if as_json:
        click.echo(msgspec.json.encode(verdict))
    else:
        click.echo(render(verdict), nl=False)
    return verdict.exit_code
