"""Jars by Maven, believed only by their digests: for workers in Java and for servers that are.

    fetch(pom, pom.with_name("jars.sha256"), Path("jars"), timeout_s=900)

Maven is the client because the machine's own settings (mirror, proxy, certificates) are written
for it.  What comes is compared with a list of digests that lies beside the pom, the way
``sha256sum`` writes it: a jar too many, too few or with another content is an error.

Trap: a pom pins what it names, not what that needs in turn; the list of digests pins all.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from harness.core.errors import HarnessError

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_LINES_SHOWN = 12


def names(digests: Path) -> dict[str, str]:
    """Name of each jar in a list of digests -> its SHA-256."""
    lines = (line.split() for line in digests.read_text().splitlines())
    return {name: digest for digest, name in lines}


def fetch(pom: Path, digests: Path | None, into: Path, *, timeout_s: float) -> None:
    """Copies the jars that ``pom`` needs at run time into a folder that is new.

    digests: None for versions that a user chose, whose digests nobody wrote down.
    HarnessError with Maven's last words, or with the names of jars that are not those listed.
    """
    _run(
        ["mvn", "-q", "-B", "-f", str(pom), _COPY, f"-DoutputDirectory={into}",
         "-DincludeScope=runtime", f"-DprojectBuildDirectory={into.parent}"],
        into.parent, timeout_s,
    )  # fmt: skip
    if digests is None:
        return
    found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in into.glob("*.jar")}
    wanted = names(digests)
    if found != wanted:
        wrong = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
        raise HarnessError(
            f"what Maven brought for {pom} is not what {digests.name} beside it lists: "
            f"{', '.join(wrong)}"
        )


def _run(argv: list[str], cwd: Path, timeout_s: float) -> None:
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=dict(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"cannot fetch the jars of {argv[4]}: {error}") from error
    if done.returncode != 0:
        said = "\n".join(f"  {line}" for line in done.stdout.strip().splitlines()[-_LINES_SHOWN:])
        raise HarnessError(
            f"exit status {done.returncode} of {' '.join(argv[:5])}:\n{said}\n"
            "Fix what it says (network, proxy settings of the tool, disk) and try again"
        )
