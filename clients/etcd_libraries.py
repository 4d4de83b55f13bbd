"""Lock libraries for etcd: what the harness knows of each.

    LIBRARIES.load("etcd-sdk-python").fencing     # "the revision that created the key"

Trap: only the harness imports this module; a worker's interpreter never does.
"""

from __future__ import annotations

from dataclasses import replace

from clients.libraries import ROOM, Library

_REVISION = "the revision that created the lock's key"
_ALL = ("renew", "believes", "fenced")


def _etcd(name: str, file: str, *, imports: str, says: str, package: str = "") -> Library:
    return Library(
        name=name,
        adapter=ROOM / "adapters" / file,
        requirements=ROOM / "requirements" / f"{package or name}.txt",
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
AETCD = _etcd(
    "aetcd", "aetcd_lock.py", imports="aetcd", says="aetcd.Client().lock(), the same for asyncio"
)
PYTHON_ETCD3 = _etcd(
    "python-etcd3",
    "python_etcd3.py",
    imports="etcd3",
    says="etcd3.client().lock(), unmaintained since 2020, still used most",
)
ETCD3GW = _etcd(
    "etcd3gw",
    "etcd3gw_lock.py",
    imports="etcd3gw",
    says="etcd3gw.client().lock() over the JSON gateway, which never waits; OpenStack's",
)
RECIPE = _etcd(
    "recipe-etcd",
    "etcd_queue.py",
    imports="pyetcd",
    package="etcd-sdk-python",
    says="the lock of etcd's own clients as it should be: a queue of keys ordered by revision, and "
    "after the wait a look whether one's own key is still there",
)
UNCHECKED_WAIT = replace(
    RECIPE,
    name="broken-etcd-unchecked-wait",
    args={"ownership_check": "no"},
    canary="lease",
    says="K09: the same queue, but nobody looks after the wait (etcd issue 11456)",
)
