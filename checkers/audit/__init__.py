"""The ownership audit: who may touch the protected thing, and what proves it.

    record = audit([Path("app/")], as_of=datetime.date(2026, 11, 30))
    print(as_text(record))

Files become facts (``read``), rules judge facts (``rules/``), ``verdict`` puts a record together,
``report`` writes it.  A new language is a reader that gives the same facts; a new rule is a
function of facts with a line in ``rules/registry.py`` and a pair of samples.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

from checkers.audit.baseline import NONE, Baseline
from checkers.audit.live.histories import Seen
from checkers.audit.logs import Mapping
from checkers.audit.model import Record
from checkers.audit.read import DEFAULT, read
from checkers.audit.report import as_data, as_json, as_text
from checkers.audit.verdict import judge


def audit(
    paths: Sequence[Path],
    *,
    as_of: datetime.date,
    seen: Sequence[Seen] = (),
    mapping: Mapping = DEFAULT,
    baseline: Baseline = NONE,
) -> Record:
    """Reads and judges files and folders, and what was seen in runs and histories.

    mapping: words and fields of logs.  baseline: findings that are known.
    UserError where a path does not exist.
    """
    return judge(read(paths, seen, mapping=mapping), as_of=as_of, baseline=baseline)


__all__ = ["Record", "as_data", "as_json", "as_text", "audit"]
