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

from harness.core.commands import built
from harness.core.errors import HarnessError

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


def names(digests: Path) -> dict[str, str]:
    """Name of each jar in a list of digests -> its SHA-256."""
    lines = (line.split() for line in digests.read_text().splitlines())
    return {name: digest for digest, name in lines}


def fetch(pom: Path, digests: Path | None, into: Path, *, timeout_s: float) -> None:
    """Copies the jars that ``pom`` needs at run time into a folder that is new.

    digests: None for versions that a user chose, whose digests nobody wrote down.
    HarnessError with Maven's last words, or with the names of jars that are not those listed.
    """
    argv = ["mvn", "-q", "-B", "-f", str(pom), _COPY, f"-DoutputDirectory={into}"]
    argv += ["-DincludeScope=runtime", f"-DprojectBuildDirectory={into.parent}"]
    try:
        built(argv, cwd=into.parent, env=os.environ, timeout_s=timeout_s, shown=5)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"cannot fetch the jars of {pom}: {error}") from error
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
