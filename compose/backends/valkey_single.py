"""One Valkey server: the fork of Redis 7.2, with the same protocol and lock commands.

Example: ``[backend]`` with ``name = "valkey-single"``.
"""

from __future__ import annotations

from compose.backends.resp import (
    resp_local,
    resp_nodes,
    resp_options,
    resp_programs,
    resp_server_args,
)
from compose.backends.spec import BackendSpec

VALKEY_SINGLE = BackendSpec(
    name="valkey-single",
    family="valkey",
    nodes=resp_nodes("valkey"),
    local=resp_local("valkey-server"),
    compose_file="valkey-single.yaml",
    image="valkey",
    releases=("trixie",),
    releases_refused={
        "bookworm": "Debian bookworm has no valkey package; use release 'trixie' or an 'image'"
    },
    options=resp_options("valkey"),
    server_args=resp_server_args,
    programs=resp_programs("valkey"),
)
