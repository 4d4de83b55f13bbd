"""From paths to facts: walks folders, picks the reader of each file, lists what was not read.

    inputs = read([Path("app"), Path("redis.conf")])
    inputs.facts.of("grant"), inputs.unread

The order is that of the names, so the same files give the same facts wherever they lie.

Traps: a file that was named is listed as unread if nothing can read it; in a folder, files of no
known kind are left out and counted, or every picture of a repository would be a line.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from checkers.audit.formats import config_facts, format_of, may_be_settings
from checkers.audit.languages.grammars import language_of
from checkers.audit.languages.reader import code_facts
from checkers.audit.live.histories import Seen, history_seen, is_history
from checkers.audit.logs import Mapping, is_log, log_facts
from checkers.audit.model import Fact, Unread
from checkers.audit.python import around, setting_facts
from checkers.audit.python.locks import lock_facts
from checkers.audit.python.names import Project
from checkers.audit.python.raw import raw_facts
from checkers.audit.rule import Facts
from harness.core.errors import UserError
from harness.core.limits import AUDIT_FILE_BYTES_MAX

_ABOUT = re.compile(
    r"lock|lease|mutex|leader|setnx|nx\s*=|advisory|semaphore|renew|ttl|expire", re.I
)
DEFAULT = Mapping()
_SKIPPED = {"__pycache__", "node_modules", "venv", "dist", "build", "store"}
_LATER = {  # code that the audit does not read yet: said, not skipped in silence
    ".kt": "Kotlin", ".kts": "Kotlin", ".scala": "Scala", ".cs": "C#", ".rs": "Rust",
    ".php": "PHP",
}  # fmt: skip


@dataclass
class Inputs:
    """What was read: facts, the lines of each file, digests, and what was not read."""

    facts: Facts = field(default_factory=lambda: Facts(()))
    texts: dict[str, str] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)
    others: int = 0  # files of no known kind below the folders


def read(paths: Sequence[Path], seen: Sequence[Seen] = (), *, mapping: Mapping = DEFAULT) -> Inputs:
    """All facts of the files and folders given; UserError if a path does not exist.

    seen: runs and histories that were judged, whose facts come on top.  mapping: of the words of
    logs.
    """
    missing = [f"{path}: no such file or folder" for path in paths if not path.exists()]
    if missing:
        raise UserError("nothing can be audited", missing)
    inputs, project = Inputs(), Project()
    logs: list[Path] = []
    histories = list(seen)
    for path, named in _files(paths):
        if is_history(path):
            histories.append(history_seen(path))
        elif is_log(path):
            logs.append(path)
        else:
            _load(inputs, path, named)
    settings: list[Fact] = []
    code: dict[str, str] = {}  # in other languages than Python
    for name, text in list(inputs.texts.items()):
        try:
            if name.endswith((".py", ".pyi")):
                project.add(name, text)
            elif language_of(name):
                code[name] = text
            else:
                settings += config_facts(name, text)
        except (SyntaxError, ValueError, RecursionError) as error:
            where = f"line {error.lineno}: " if isinstance(error, SyntaxError) else ""
            _refuse(inputs, name, f"not in its format: {where}{error}")
    for module in project.modules.values():
        settings += setting_facts(module)
    for fact in settings:
        if fact.get("format") == "env":
            project.environment[str(fact.get("name"))] = str(fact.get("value"))
    found = list(settings)
    others, refused = code_facts(code, project.environment)
    found += others
    for name, why in refused.items():
        _refuse(inputs, name, why)
    for name in list(project.modules):
        if not _ABOUT.search(inputs.texts[name]):
            continue  # none of the words that a fact begins with: a constant may still be used
        try:
            module = project.modules[name]
            locks = lock_facts(module)
            locks += raw_facts(module, [f for f in locks if f.kind == "grant"])
            found += locks + around(module, locks)
        except RecursionError:
            _refuse(inputs, name, "nested too deeply to be followed")
    found += _logs(inputs, logs, mapping)
    for item in histories:
        found += item.facts
        inputs.texts[item.path], inputs.digests[item.path] = "", item.digest
    found.sort(key=lambda fact: (fact.place, fact.kind))
    inputs.facts = Facts(tuple(found), code_files=len(project.modules) + len(code))
    return inputs


def _logs(inputs: Inputs, paths: Sequence[Path], mapping: Mapping) -> list[Fact]:
    report = log_facts(paths, mapping)
    inputs.unread += report.unread
    inputs.digests |= report.digests
    inputs.texts |= dict.fromkeys(report.digests, "")
    return report.facts


def _refuse(inputs: Inputs, name: str, why: str) -> None:
    inputs.unread.append(Unread(name, why))
    del inputs.texts[name], inputs.digests[name]


def _load(inputs: Inputs, path: Path, named: bool) -> None:
    name = path.as_posix()
    if path.suffix in _LATER:
        inputs.unread.append(Unread(name, f"{_LATER[path.suffix]} is not read by this version"))
        return
    code = path.suffix in (".py", ".pyi") or bool(language_of(name))
    looks = code or may_be_settings(name)
    if not looks:
        inputs.others += 1
        if named:
            inputs.unread.append(Unread(name, "of no kind that the audit can read"))
        return
    try:
        if path.stat().st_size > AUDIT_FILE_BYTES_MAX:
            why = f"larger than {AUDIT_FILE_BYTES_MAX} bytes"
            inputs.unread.append(Unread(name, why))
            return
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        inputs.unread.append(Unread(name, f"cannot be read: {error}"))
        return
    if not code and not format_of(name, text):
        inputs.unread.append(Unread(name, "a configuration of no kind that the audit knows"))
        return
    inputs.texts[name] = text
    inputs.digests[name] = hashlib.sha256(data).hexdigest()


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """(file, was it named itself), sorted, each once."""
    seen: dict[Path, bool] = {}
    for path in paths:
        if path.is_file():
            seen[path] = True
            continue
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(f for f in folders if f not in _SKIPPED and not f.startswith("."))
            for name in names:
                seen.setdefault(Path(folder) / name, False)
    yield from sorted(seen.items())
