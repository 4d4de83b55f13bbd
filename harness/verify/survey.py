"""The survey: what every lock does when its holder pauses, its server restarts, its link is cut.

    survey = load_survey(Path("docs/survey.json"))
    Path("docs/survey.md").write_text(page_of(survey))

The data are verifications of the key situations, one document per library; the page is made from
them alone.  A cell that is known is not run again, so a survey can be stopped and taken up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from clients.libraries import Library
from harness.core.errors import UserError
from harness.registries import BACKENDS, LIBRARIES
from harness.report.escape import safe
from harness.verify.document import Cell, Document
from harness.verify.servers import SITUATIONS
from harness.verify.traits import traits_of

SCHEMA = "lockhavoc/survey/1"
COLUMNS = (
    ("holder-pause", "holder paused past its lease"),
    ("holder-jammed", "link of the holder stuck"),
    ("holder-severed", "link of the holder closed"),
    ("server-restart", "server restarts with its data"),
    ("server-restart-empty", "server restarts empty"),
    ("worker-killed", "holder dies"),
)


class Survey(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Verifications by library.  command: the last one that added to it."""

    schema: str = SCHEMA
    command: str = ""
    documents: dict[str, Document] = {}


def load_survey(path: Path) -> Survey:
    """What was surveyed so far; an empty one if there is no file yet."""
    if not path.exists():
        return Survey()
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Survey)
    except (OSError, msgspec.DecodeError) as error:
        raise UserError(f"{path}: not a survey: {error}") from error
    if found.schema != SCHEMA:
        raise UserError(f"{path}: schema is {found.schema!r}, this version reads {SCHEMA!r}")
    return found


def surveyed_libraries() -> list[str]:
    """All but the deliberately broken ones, each on a real backend."""
    return [name for name in LIBRARIES.names() if first_backend(name) and not _canary(name)]


def _canary(name: str) -> bool:
    known: Library = LIBRARIES.load(name)
    return bool(known.canary)


def first_backend(name: str) -> str:
    """The backend that stands for a library in the survey, "" if it has no real one."""
    known: Library = LIBRARIES.load(name)
    return next((backend for backend in known.backends if backend in BACKENDS), "")


def add(survey: Survey, made: Document) -> None:
    """Puts a verification's cells in, in place of those that were there.

    A cell that could not be judged never replaces one that could.
    """
    before = survey.documents.get(made.library)
    if before is None:
        survey.documents[made.library] = made
        return
    cells = {cell.place: cell for cell in before.cells}
    for cell in made.cells:
        if cell.place not in cells or is_known(cell):
            cells[cell.place] = cell
    order = list(SITUATIONS)
    before.cells = sorted(
        cells.values(), key=lambda cell: (cell.backend, order.index(cell.situation))
    )
    before.versions.update(made.versions)
    before.started, before.command = made.started, made.command


def is_known(cell: Cell) -> bool:
    """Whether a cell says something."""
    return cell.verdict not in ("unknown", "not-run")


def known(survey: Survey, library: str) -> set[tuple[str, str]]:
    """(backend, situation) of the cells that need not run again."""
    document = survey.documents.get(library)
    if document is None:
        return set()
    return {(cell.backend, cell.situation) for cell in document.cells if is_known(cell)}


# ---- the page ---------------------------------------------------------------------------------


def page_of(survey: Survey) -> str:
    """docs/survey.md."""
    return "\n".join(_lines(survey)) + "\n"


def _lines(survey: Survey) -> Iterator[str]:
    documents = [survey.documents[name] for name in sorted(survey.documents)]
    dates = sorted(document.started[:10] for document in documents if document.started)
    yield "# What locks do when it matters\n"
    yield "<!-- Made by `lockhavoc survey` from survey.json; change nothing here. -->\n"
    if not documents:
        yield "Nothing has been surveyed yet: run `lockhavoc survey`."
        return
    when = f"on {dates[0]}" if dates[0] == dates[-1] else f"from {dates[0]} to {dates[-1]}"
    many = "lock" if len(documents) == 1 else "locks"
    yield (
        f"{len(documents)} {many}, each put through the same situations on real servers by "
        f"`{_md(survey.command)}`; seen {when}. One run per cell: a break "
        "that was seen is proven by its operations, one that was not seen may still be there.\n"
    )
    yield (
        "Words: *two believe*: another client got the lock while its holder still believed in it. "
        "*Late write*: the resource took a write of the one who had lost the lock. *Granted "
        "twice*: the service gave the lock to two at a time. In **bold** what the library (or its "
        "store) promises not to do; the rest nobody promised. A dash: it does not apply. "
        "`lockhavoc verify LIBRARY` repeats any row.\n"
    )
    yield from _what_happens(documents)
    yield "\n## How a holder learns of it, and how long it takes\n"
    yield from _how_told(documents)
    yield "\n## Versions\n"
    yield from _versions(documents)


def _what_happens(documents: Sequence[Document]) -> Iterator[str]:
    yield "| lock | servers | " + " | ".join(words for _, words in COLUMNS) + " |"
    yield "|" + "---|" * (len(COLUMNS) + 2)
    for document in documents:
        cells = {cell.situation: cell for cell in document.cells}
        backend = document.cells[0].backend if document.cells else ""
        row = [
            outcome(cells[name]) if name in cells else missing(document.library, backend, name)
            for name, _ in COLUMNS
        ]
        yield f"| `{document.library}` | {backend} | {' | '.join(row)} |"


def missing(library: str, backend: str, situation: str) -> str:
    """Why there is no such cell."""
    if library not in LIBRARIES or backend not in BACKENDS:
        return "not run"
    traits = traits_of(library, backend, "process")
    return "–" if SITUATIONS[situation].build(traits) is None else "not run"


def outcome(cell: Cell) -> str:
    """What a cell showed, in a few words."""
    if cell.verdict == "not-run":
        return "not possible here"
    if cell.verdict == "unknown":
        return "unknown"
    words = {
        "grant": "granted twice",
        "belief": "two believe",
        "write": "late write",
        "answer": "answers ok to a non-owner",
        "progress": "not granted again in time",
    }
    said = []
    for name, what in words.items():
        if cell.seen.get(name) == "broken":
            said.append(f"**{what}**" if cell.claims.get(name) == "holds" else what)
    return ", ".join(said) or "holds"


def _how_told(documents: Sequence[Document]) -> Iterator[str]:
    head = (
        "lock", "tells of a loss by itself", "longest belief in a lost lock (ms)",
        "of it awake (ms)", "in", "belief ended by", "next grant after a holder's pause began (ms)",
        "after its death (ms)",
        "after the server was back (ms)",
    )  # fmt: skip
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for document in documents:
        cells = {cell.situation: cell for cell in document.cells if is_known(cell)}
        worst = max(cells.values(), key=lambda cell: cell.loss.awake_lag_ms, default=None)
        lost = worst is not None and worst.loss.losses > 0
        longest = max((cell.loss.lag_ms for cell in cells.values()), default=0.0)
        told = ", ".join(worst.loss.told_by) if worst and lost else ""
        pause, death = cells.get("holder-pause"), cells.get("worker-killed")
        restart = cells.get("server-restart")
        row = (
            f"`{document.library}`", document.loss_signal,
            f"{longest:.0f}" if lost else "none lost",
            f"{worst.loss.awake_lag_ms:.0f}" if worst and lost else "",
            worst.situation if worst and lost else "", told,
            _ms(pause.takeover_ms if pause else None),
            _ms(death.takeover_ms if death else None),
            _ms(restart.recovery_ms if restart else None),
        )  # fmt: skip
        yield f"| {' | '.join(row)} |"


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"


def _versions(documents: Sequence[Document]) -> Iterator[str]:
    yield "| lock | what | versions | runtime | seeds | seen |"
    yield "|---|---|---|---|---|---|"
    for document in documents:
        versions = ", ".join(f"{k} {v}" for k, v in sorted(document.versions.items()))
        runtimes = ", ".join(dict.fromkeys(cell.runtime for cell in document.cells))
        seeds = ", ".join(
            str(seed) for seed in sorted({cell.seed for cell in document.cells if cell.seed})
        )
        yield (
            f"| `{document.library}` | {_md(document.about)} | {_md(versions)} | {runtimes} | "
            f"{seeds} | {document.started[:10]} |"
        )


def _md(words: str) -> str:
    return " ".join(safe(words).split()).replace("|", "\\|").replace("<", "&lt;")
