"""The clock shim for servers in containers: a Compose file beside the backend's own.

    file, clocks = overlay(["redis"], run_dir=run, shim=Path("~/.cache/.../clockshim.so"))
    Project(name, backend_file, env, overlay=file)

Shim and control file are bound into the container, so that any image with glibc will do, official
ones too, and a change of the file is seen at once: both sides map the same page of memory.

Traps: the server runs as another user and writes its count of looks into the file, hence its
mode.  A harness that is itself in a container names paths that the Engine does not know: Compose
then refuses to start (``create_host_path: false``) instead of mounting empty folders.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.core.skew import SkewFile

SHIM, CONTROL = "/lockhavoc/clockshim.so", "/lockhavoc/clock"


def overlay(nodes: Sequence[str], *, run_dir: Path, shim: Path) -> tuple[Path, dict[str, SkewFile]]:
    """Writes ``run_dir/nodes/clocks.json`` and one control file per node, beside it."""
    folder = run_dir.resolve() / "nodes"
    clocks = {name: SkewFile(folder / f"{name}.clock") for name in nodes}
    services: dict[str, Any] = {}
    for name, clock in clocks.items():
        clock.create()
        clock.path.chmod(0o666)
        services[name] = {
            "environment": dict(clock.environment(Path(SHIM), Path(CONTROL))),
            "volumes": [_bind(shim, SHIM, read_only=True), _bind(clock.path, CONTROL)],
        }
    file = folder / "clocks.json"
    file.write_text(json.dumps({"services": services}, indent=2))
    return file, clocks


def _bind(source: Path, target: str, *, read_only: bool = False) -> dict[str, Any]:
    return {
        "type": "bind",
        "source": str(source),
        "target": target,
        "read_only": read_only,
        "bind": {"create_host_path": False},
    }
