"""Annotations for GitHub Actions: a line per run that did not go as claimed, at its scenario.

    for line in commands([(Path("scenarios/redis/holder-pause.toml"), report)]):
        print(line, file=sys.stderr)

GitHub reads workflow commands from both streams, so they go to stderr and the results stay alone on
stdout.  A violation and a broken harness are errors, a run that proved nothing is a warning.

Trap: a message from a server may hold a line end and ``::set-env``.  Strings are cleaned first,
then ``%``, line ends and, in properties, ``:`` and ``,`` are written as GitHub wants them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.core.errors import EXIT_AS_CLAIMED, EXIT_UNKNOWN
from harness.report.document import RunReport, replay_line
from harness.report.escape import safe
from harness.report.marks import worst
from harness.report.text import HEADLINES


def commands(runs: Iterable[tuple[Path, RunReport]]) -> Iterator[str]:
    """One workflow command for each run that did not go as claimed."""
    for path, report in runs:
        if report.exit_code == EXIT_AS_CLAIMED:
            continue
        level = "warning" if report.exit_code == EXIT_UNKNOWN else "error"
        title = f"{HEADLINES[report.verdict]}: {safe(report.name)}"
        found = [safe(anomaly.says) for _, anomaly in worst(report.results)[:1]]
        lines = [safe(report.says), *found, f"repeat: {safe(replay_line(report))}"]
        place = f"file={_property(safe(path))},title={_property(title)}"
        yield f"::{level} {place}::{_message(chr(10).join(lines))}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
