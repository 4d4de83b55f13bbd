"""Where the recorded histories of Porcupine are: not committed here, so they are looked for.

First ``../shared/data/porcupine`` beside the project, else the Go module (from the module cache, or
downloaded through the go command, which verifies the module's checksum; the checksum is compared
with the committed one too).  Each file's own digest is checked before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
VERDICTS = json.loads((ROOT / "tests/data/porcupine-verdicts.json").read_text())
REQUIRE = "LOCKHAVOC_REQUIRE_CORPUS"
DOWNLOAD_S_MAX = 120


class CorpusMissing(Exception):
    """Says where was looked, and what went wrong there."""


@cache
def folder() -> Path:
    """The folder with ``jepsen/`` and ``kv/``; CorpusMissing with the reasons if there is none."""
    shared = ROOT.parent / "shared" / "data" / "porcupine"
    if shared.is_dir():
        return shared
    return from_module()


def from_module() -> Path:
    """The test data inside the Go module."""
    module = f"{VERDICTS['module']}@{VERDICTS['version']}"
    go = shutil.which("go")
    if go is None:
        raise CorpusMissing(f"no ../shared/data/porcupine, and no go command to get {module}")
    try:
        done = subprocess.run(
            [go, "mod", "download", "-json", module],
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_S_MAX,
            cwd="/",
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CorpusMissing(f"go mod download {module}: no end after {error.timeout} s") from error
    told: dict[str, Any] = json.loads(done.stdout) if done.stdout.strip() else {}
    if done.returncode != 0 or "Dir" not in told:
        said = (told.get("Error") or done.stderr.strip() or f"exit code {done.returncode}")[:300]
        raise CorpusMissing(f"no ../shared/data/porcupine, and go mod download {module}: {said}")
    if told["Sum"] != VERDICTS["h1"]:
        raise CorpusMissing(f"{module} has checksum {told['Sum']}, expected {VERDICTS['h1']}")
    return Path(told["Dir"]) / "test_data"


def path_of(entry: dict[str, Any], where: Path | None = None) -> Path:
    """The file of one entry of the verdicts, its digest checked."""
    path = (where or folder()) / entry["file"]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != entry["sha256"]:
        raise CorpusMissing(f"{path} has sha256 {digest}, expected {entry['sha256']}")
    return path


def required() -> bool:
    return os.environ.get(REQUIRE) == "1"
