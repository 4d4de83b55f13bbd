"""What a user chose: which requirements come of it, what is refused, what an adapter says."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from clients import choice as choices
from clients import environments
from clients.choice import LibraryChoice, requirements_of, settle
from clients.libraries import REDIS_PY
from clients.registry import LIBRARIES
from harness.core.errors import UserError
from tests.clients.workers import POSTAMBLE, PREAMBLE


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "lockhavoc" / "envs"


@pytest.mark.parametrize(
    ("library", "given", "expected"),
    [
        ("redis-py", ("redis==5.0.0",), {"redis==5.0.0"}),
        ("redis-py-asyncio", ("redis-py==5.0.0",), {"redis==5.0.0"}),
        ("redis-py", ("Redis>=5,<6", "hiredis==3.0.0"), {"Redis>=5,<6", "hiredis==3.0.0"}),
        (
            "python-etcd3",
            ("python-etcd3==0.11.0", "protobuf<3.20"),
            {"etcd3==0.11.0", "protobuf<3.20", "tenacity>=6.1,<7"},
        ),
    ],
)
def test_a_requirement_replaces_the_one_of_the_same_distribution(
    library: str, given: tuple[str, ...], expected: set[str]
) -> None:
    assert set(requirements_of(LIBRARIES.load(library), LibraryChoice(with_=given))) == expected


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        (LibraryChoice(with_=("-r x.txt",)), "client.with[0]: '-r x.txt' is no requirement"),
        (LibraryChoice(with_=("--index-url=http://x",)), "is no requirement"),
        (LibraryChoice(with_=("redis 5.0",)), "is no requirement"),
        (LibraryChoice(with_=("a==1",), python="py"), "'py' is used as it is, so client.with"),
        (LibraryChoice(wheel="dist/x.tar.gz"), "not named like a wheel"),
        (LibraryChoice(wheel="/none/x-1-py3-none-any.whl"), "there is no file '/none/x-1"),
        (LibraryChoice(adapter="/none/a.py"), "client.adapter: there is no file '/none/a.py'"),
        (LibraryChoice(adapter="/none/a.pyc"), "an adapter is one .py file"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(choice: LibraryChoice, says: str) -> None:
    with pytest.raises(UserError) as caught:
        settle(REDIS_PY, choice)
    assert says in str(caught.value)
    assert caught.value.exit_code == 254


def make_wheel(directory: Path, name: str, modules: Mapping[str, str]) -> Path:
    """A wheel of version 1.0 with the modules given; no build tool is needed."""
    path, info = directory / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    files = {f"{module}.py": text for module, text in modules.items()}
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for file, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        record += f"{file},sha256={digest.decode()},{len(text.encode())}\n"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
        archive.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return path


@pytest.mark.live
def test_a_wheel_runs_under_the_users_adapter_and_sees_nothing_of_the_harness(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(choices.__file__).parents[1]))
    wheel = make_wheel(tmp_path, "my_lock", {"my_lock": "SAYS = 1\n"})
    adapter = tmp_path / "my_adapter.py"
    adapter.write_text(f"import my_lock\n{PREAMBLE}{POSTAMBLE}")
    choice = LibraryChoice(wheel=str(wheel), adapter=str(adapter))
    target = settle(None, choice)
    assert target.library.name == "in-test"
    assert target.library.lease == "ttl"
    assert target.record["packages"] == {"my_lock": "1.0"}
    assert target.record["wheel"]["sha256"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    for module in ("msgspec", "pydantic", "click", "harness"):
        probe = [str(target.python), "-c", f"import {module}"]
        done = subprocess.run(
            probe, capture_output=True, cwd=tmp_path, env=environments.clean({}), check=False
        )
        assert done.returncode == 1, f"{module} can be imported beside the library"
    # Another content under the same name is another environment; the same one is not made twice.
    assert settle(None, choice).python == target.python
    make_wheel(tmp_path, "my_lock", {"my_lock": "SAYS = 2\n"})
    assert settle(None, choice).python != target.python


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\n", "the file defines no ADAPTER"),
        ("class A:\n    library = 'a'\nADAPTER = A\n", "its ADAPTER has no distributions, lease"),
        ("import no_such_module\n", "--with NAME==VERSION"),
        ("def (\n", "SyntaxError"),
        (
            PREAMBLE.replace("distributions, lease", "lease, distributions").replace(
                '(), Lease("ttl")', 'Lease("ttl"), ("not-installed",)'
            )
            + POSTAMBLE,
            "not-installed",
        ),
    ],
)
def test_an_adapter_that_is_not_one_is_refused(tmp_path: Path, text: str, says: str) -> None:
    adapter = tmp_path / "my_adapter.py"
    adapter.write_text(text)
    with pytest.raises(UserError) as caught:
        settle(None, LibraryChoice(adapter=str(adapter), python=sys.executable))
    assert "client.adapter: my_adapter.py cannot be used" in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.live
def test_a_version_that_does_not_exist_is_the_users_mistake(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(UserError, match=r"there is no way to install redis==0\.0\.99"):
        settle(REDIS_PY, LibraryChoice(with_=("redis-py==0.0.99",)))
    assert not list(cache.glob("*/bin")), "nothing half-made is left"
