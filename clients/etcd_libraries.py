"""Lock libraries for etcd: what the harness knows of each.

    LIBRARIES.load("etcd-sdk-python").fencing     # "the revision that created the key"

Trap: only the harness imports this module; a worker's interpreter never does.
"""

from __future__ import annotations

from clients.libraries import ROOM, Library

_REVISION = "the revision that created the lock's key"
_ALL = ("renew", "believes", "fenced")


def _etcd(name: str, file: str, *, imports: str, says: str) -> Library:
    return Library(
        name=name,
        adapter=ROOM / "adapters" / file,
        requirements=ROOM / "requirements" / f"{name}.txt",
        imports=(imports,),
        backends=("etcd3",),
        powers=_ALL,
        fencing=_REVISION,
        says=says,
    )


ETCD_SDK = _etcd(
    "etcd-sdk-python",
    "etcd_sdk.py",
    imports="pyetcd",
    says="pyetcd.client().lock(), the maintained fork of python-etcd3",
)
