"""Undo for the docker runtime, as a program that needs nothing but Python and the docker client.

    python compose/docker_undo.py down lockhavoc-1a2b3c     # containers, networks and volumes
    python compose/docker_undo.py unpause 4f5e…             # a container, if it is paused
    python compose/docker_undo.py hear 4f5e… IMAGE          # end of a blackhole in its namespace
    python compose/docker_undo.py list                      # what runs of lockhavoc left behind

Why a file of its own that imports no other: the ledger names it by path, so that ``heal`` works
from any folder and any process, also when the run's Compose file is gone.

Every command is idempotent: what is not there any more counts as undone.  Traps: ``docker
unpause`` fails on a container that is not paused, and ``docker rm`` on one that is gone; so after
a failure the state is read back, and only that decides.  Things are found by Compose's labels,
never by name.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TextIO

PROJECT_LABEL = "com.docker.compose.project"
OWN_LABEL = "lockhavoc"
CALL_TIMEOUT_S = 60.0
PASSES_MAX = 6
SETTLE_S = 0.5  # making a container takes 0.1 s on an idle machine

# kind -> (argv that lists ids, argv that removes).  Order matters: a volume or network in use by
# a container cannot be removed.
KINDS: dict[str, tuple[list[str], list[str]]] = {
    "container": (["ps", "-aq", "--no-trunc"], ["rm", "-f", "-v"]),
    "network": (["network", "ls", "-q", "--no-trunc"], ["network", "rm"]),
    "volume": (["volume", "ls", "-q"], ["volume", "rm", "-f"]),
}


# Chains and the options that name an interface there.  Loopback stays: within a node all is well.
PACKETS = (("INPUT", "-i"), ("OUTPUT", "-o"))


class UndoError(Exception):
    """Something should have been undone and was not; the message says what and why."""


def docker(*args: str) -> str:
    """Standard output of one docker call; UndoError with its stderr if it fails."""
    try:
        done = subprocess.run(
            ["docker", *args],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CALL_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UndoError(f"docker {' '.join(args)}: {error}") from error
    if done.returncode != 0:
        raise UndoError(f"docker {' '.join(args)}: {done.stderr.strip()[-500:]}")
    return done.stdout


def leftovers(label: str) -> dict[str, list[str]]:
    """Ids of what carries ``label`` ("key" or "key=value"): {"container": [...], ...}."""
    return {
        kind: docker(*listing, "--filter", f"label={label}").split()
        for kind, (listing, _) in KINDS.items()
    }


def remove_project(project: str, *, settle_s: float = 0.0) -> int:
    """Removes every container, network and volume of a Compose project; returns how many.

    settle_s: looks once more after so long.  A client that was killed may have asked for a
    container that the Engine lists only when it is made.  Raises UndoError if something is left.
    """
    label = f"{PROJECT_LABEL}={project}"
    removed, last = 0, ""
    for _ in range(PASSES_MAX):
        found = leftovers(label)
        if not any(found.values()):
            if settle_s <= 0:
                return removed
            time.sleep(settle_s)
            settle_s = 0.0
            continue
        for kind, ids in found.items():
            try:
                if ids:
                    docker(*KINDS[kind][1], *ids)
                    removed += len(ids)
            except UndoError as error:
                # Gone meanwhile, or still being taken down: the next pass looks again.
                last = str(error)
    found = leftovers(label)
    if any(found.values()):
        raise UndoError(
            f"project {project}: still there after {PASSES_MAX} passes: {found}; {last}"
        )
    return removed


def unpause(container: str) -> str:
    """Unpauses a container if it is there and paused; returns what was found."""
    if not _is_paused(container):
        return "was not paused"
    try:
        docker("unpause", container)
    except UndoError:
        if _is_paused(container):
            raise
    return "unpaused"


def _is_paused(container: str) -> bool:
    # `ps` with a filter answers nothing for a container that is gone, where `inspect` would fail
    # in the same way as for an Engine that does not answer.
    paused = ["ps", "-q", "--filter", f"id={container}", "--filter", "status=paused"]
    return bool(docker(*paused).split())


def packet_rules(act: str) -> list[str]:
    """A shell script's words: ``act`` (-I, -D) both rules of a blackhole in this namespace."""
    rules = [f"iptables -w {act} {chain} ! {side} lo -j DROP" for chain, side in PACKETS]
    return ["sh", "-ec", "; ".join(rules)]


def in_namespace(container: str, image: str, words: list[str]) -> str:
    """Runs ``words`` as a container of ``image`` with rights over the network of ``container``."""
    rights = ["--cap-drop", "ALL", "--cap-add", "NET_ADMIN", "--user", "0"]
    label = ["--label", f"{OWN_LABEL}=1"]
    network = ["--network", f"container:{container}"]
    return docker("run", "--rm", *label, *rights, *network, "--entrypoint", words[0], image,
                  *words[1:])  # fmt: skip


def hear(container: str, image: str) -> str:
    """Ends a blackhole; says so if there was none (or the container is gone, rules and all)."""
    if not docker("ps", "-q", "--filter", f"id={container}").split():
        return "is gone"
    try:
        in_namespace(container, image, packet_rules("-D"))
    except UndoError as error:
        if "does a matching rule exist" in str(error) or "No chain" in str(error):
            return "heard already"
        raise
    return "hears again"


def main(argv: list[str]) -> int:
    """Exit code 0 done, 254 usage, 255 not done (the reason is on stderr)."""
    try:
        match argv:
            case ["down", project]:
                _say(f"{project}: removed {remove_project(project, settle_s=SETTLE_S)} things")
            case ["unpause", container]:
                _say(f"{container[:12]}: {unpause(container)}")
            case ["hear", container, image]:
                _say(f"{container[:12]}: {hear(container, image)}")
            case ["list"]:
                for kind, ids in leftovers(OWN_LABEL).items():
                    for name in ids:
                        _say(f"{kind} {name}")
            case _:
                _say(
                    "usage: docker_undo.py down PROJECT | unpause ID | hear ID IMAGE | list",
                    sys.stderr,
                )
                return 254
    except UndoError as error:
        _say(str(error), sys.stderr)
        return 255
    return 0


def _say(text: str, file: TextIO = sys.stdout) -> None:
    print(text, file=file)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
