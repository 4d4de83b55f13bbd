"""A wheel in which the search of the general checker is compiled to C, by mypyc.

    python benchmarks/compiled.py dist        # prints the wheel's path; pip install it

The same source, the same answers (tests/checkers/test_compiled.py), about two thirds of the time.
Needs a C compiler.  Wheels without it are the usual ones, so nothing needs a compiler unasked.

Trap: mypyc leaves its libraries beside the sources that it compiled, and Python prefers them to
the sources from then on, changed or not.  So it works on an unpacked source distribution.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))  # at the end: what is compiled goes in front

from harness.core.commands import built  # noqa: E402 - after the path to the project is set

TIMEOUT_S = 900.0  # half a minute on an idle core


def wheel(into: Path) -> Path:
    """Builds it into the folder ``into``; HarnessError with what the tools said if they fail."""
    env = {**os.environ, "HATCH_BUILD_HOOK_ENABLE_MYPYC": "true"}
    with tempfile.TemporaryDirectory() as name:
        made = Path(name)
        hatchling = [sys.executable, "-m", "hatchling", "build", "-d", name]
        built([*hatchling, "-t", "sdist"], cwd=ROOT, env=env, timeout_s=TIMEOUT_S)
        (packed,) = made.glob("*.tar.gz")
        shutil.unpack_archive(packed, made, filter="data")
        source = made / packed.name.removesuffix(".tar.gz")
        built([*hatchling, "-t", "wheel"], cwd=source, env=env, timeout_s=TIMEOUT_S)
        (path,) = made.glob("*.whl")
        into.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(path, into))


def unpacked(into: Path) -> Path:
    """A folder for the front of ``sys.path`` with all that is in the wheel."""
    with tempfile.TemporaryDirectory() as name:
        zipfile.ZipFile(wheel(Path(name))).extractall(into)
    return into


if __name__ == "__main__":
    print(wheel(Path(sys.argv[1] if len(sys.argv) > 1 else "dist")))
