"""``lockhavoc serve``: pages over a store, and what must not be had from it."""

from __future__ import annotations

import http.client
import io
import json
import socket
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped] # has none
from playwright.sync_api import Browser

from harness.report.document import document
from harness.serve import Web
from harness.stored_runs import StoredRuns
from harness.summary import write_reports
from tests.harness.reports import HOSTILE, SECRET, full, hostile
from tests.report.synthetic import synthetic


def fill(store: Path) -> None:
    """Four runs: a violation with a page, a good one, one of hostile strings, one unfinished."""
    run = synthetic(ops=60)
    for name, stamp, report in [
        ("synthetic", "20261130T120000.000Z", run.report),
        ("synthetic", "20261130T130000.000Z",
         msgspec.structs.replace(run.report, exit_code=1, verdict="violation", seed=8)),
        ("redis-holder-pause", "20261130T110000.000Z", full()),
        ("bad", "20261130T100000.000Z", hostile()),
    ]:  # fmt: skip
        directory = store / name / stamp
        (directory / "nodes").mkdir(parents=True)
        (directory / "plan.json").write_text("{}")
        (directory / "nodes" / "redis.log").write_text("<script>alert(1)</script>\n")
        write_reports(directory, report, lambda: (run.history, run.context))
    (store / "synthetic" / "latest").symlink_to("20261130T130000.000Z")
    unfinished = store / "redis-holder-pause" / "20261130T140000.000Z"
    unfinished.mkdir()
    (unfinished / "plan.json").write_text("{}")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    store = tmp_path_factory.mktemp("served") / "store"
    fill(store)
    (store.parent / "outside.txt").write_text("not yours")
    (store / "synthetic" / "20261130T120000.000Z" / "leak.txt").symlink_to(
        store.parent / "outside.txt"
    )
    with Web(store, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Reply(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def get(web: Web, path: str, *, method: str = "GET", host: str = "") -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", web.server_port, timeout=10)
    try:
        headers = {"Host": host} if host else {}
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        return Reply(reply.status, dict(reply.getheaders()), reply.read())
    finally:
        connection.close()


def test_the_index_lists_every_run_newest_first(web: Web) -> None:
    text = get(web, "/").text
    stamps = ["20261130T140000.000Z", "20261130T130000.000Z", "20261130T120000.000Z",
              "20261130T110000.000Z", "20261130T100000.000Z"]  # fmt: skip
    places = [text.index(stamp) for stamp in stamps]
    assert places == sorted(places)
    assert "5 of 5 runs" in text
    assert "UNFINISHED" in text


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("verdict=violation", 2),
        ("library=redis-py", 1),
        ("backend=sim", 2),
        ("fault=worker-pause", 3),
        ("fault=worker-pause&library=redis-py", 1),
        ("name=synthetic", 2),
        ("verdict=nothing-such", 0),
    ],
)
def test_filters_narrow_the_index(web: Web, query: str, count: int) -> None:
    assert f'<p class="small">{count} of 5 runs' in get(web, f"/?{query}").text


def test_a_campaign_counts_and_names_the_seeds_that_failed(web: Web) -> None:
    text = get(web, "/campaign/synthetic").text
    assert "2 runs: 1 violation, 1 as claimed" in text
    assert "Safety was violated in 2 of 2" in text
    assert ">8</a>" in text
    assert "No run of this name" in get(web, "/campaign/nobody").text


def test_the_matrix_links_each_cell_to_its_runs(web: Web) -> None:
    text = get(web, "/matrix").text
    assert 'href="/?library=sim&amp;fault=worker-pause">1 of 2 as claimed' in text
    assert '<td class="cell bad">' in text
    assert '<th scope="col">sever</th>' in text


def test_two_runs_are_compared(web: Web) -> None:
    a, b = "synthetic/20261130T120000.000Z", "synthetic/20261130T130000.000Z"
    text = get(web, f"/compare?a={a}&b={b}").text
    assert '<tr class="differs"><th scope="row">seed</th>' in text
    assert '<tr class=""><th scope="row">library</th>' in text
    assert get(web, f"/compare?a={a}&b=nobody/here").status == 404


def test_a_run_opens_its_report_and_its_files(web: Web) -> None:
    base = "/run/synthetic/20261130T120000.000Z"
    page = get(web, f"{base}/")
    assert page.headers["Content-Type"].startswith("text/html")
    assert "The moment it broke" in page.text
    results = get(web, f"{base}/results.json")
    assert results.headers["Content-Type"] == "application/json"
    assert json.loads(results.body)["name"] == "synthetic"
    log = get(web, f"{base}/nodes/redis.log")
    assert log.headers["Content-Type"].startswith("text/plain")
    assert log.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in log.headers["Content-Security-Policy"]
    listed = get(web, "/files/synthetic/20261130T120000.000Z").text
    assert "nodes/redis.log" in listed
    assert "leak.txt" not in listed
    assert "plan.json" in get(web, "/run/redis-holder-pause/20261130T140000.000Z/").text
    assert "VIOLATION" in get(web, "/run/synthetic/latest/").text


def test_a_run_comes_as_a_zip(web: Web) -> None:
    reply = get(web, "/zip/synthetic/20261130T120000.000Z")
    assert reply.headers["Content-Disposition"] == "attachment"
    names = zipfile.ZipFile(io.BytesIO(reply.body)).namelist()
    assert "synthetic-20261130T120000.000Z/results.json" in names
    assert "synthetic-20261130T120000.000Z/nodes/redis.log" in names
    assert not [name for name in names if "leak" in name]


def test_a_badge_is_the_newest_verdict(web: Web) -> None:
    reply = get(web, "/badge/synthetic.svg")
    assert reply.headers["Content-Type"] == "image/svg+xml"
    assert "violation" in reply.text
    assert get(web, "/badge/nobody.svg").status == 404


@pytest.mark.parametrize(
    "path",
    [
        "/run/../../outside.txt",
        "/run/synthetic/../../outside.txt",
        "/run/synthetic/20261130T120000.000Z/../../../outside.txt",
        "/run/synthetic/20261130T120000.000Z/leak.txt",
        "/run/..%2F..%2Foutside.txt/x/y",
        "/run/synthetic/%2e%2e/%2e%2e/outside.txt",
        "/run/synthetic/20261130T120000.000Z/%2Fetc%2Fpasswd",
        "/zip/../..",
        "/files/%00/x",
        "/nothing",
        "/?page=x",
    ],
)
def test_nothing_outside_of_the_runs_can_be_had(web: Web, path: str) -> None:
    reply = get(web, path)
    assert reply.status == 404
    assert b"not yours" not in reply.body
    assert b"root:" not in reply.body


def test_it_answers_to_its_own_name_only(web: Web) -> None:
    assert get(web, "/", host=f"evil.example:{web.server_port}").status == 403
    assert get(web, "/", host="127.0.0.1").status == 403
    assert get(web, "/", host=f"localhost:{web.server_port}").status == 200


def test_it_listens_on_loopback_only_and_writes_nothing(web: Web) -> None:
    assert web.server_address[0] == "127.0.0.1"
    assert web.socket.family is socket.AF_INET
    for method in ("POST", "PUT", "DELETE"):
        assert get(web, "/", method=method).status == 501
    head = get(web, "/", method="HEAD")
    assert (head.status, head.body) == (200, b"")


def test_hostile_strings_of_runs_stay_text(web: Web) -> None:
    compare = "/compare?a=bad/20261130T100000.000Z&b=synthetic/latest"
    for path in ("/", "/matrix", "/campaign/bad", compare, "/?name=%3Cscript%3E"):
        text = get(web, path).text
        assert "<script>alert" not in text
        assert SECRET not in text
        assert "\x1b" not in text


def test_a_changed_run_is_read_again(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "1"
    directory.mkdir(parents=True)
    (directory / "plan.json").write_text("{}")
    runs = StoredRuns(tmp_path)
    assert [run.facts.verdict for run in runs.all()] == ["unfinished"]
    (directory / "results.json").write_bytes(document(full()))
    assert [run.facts.verdict for run in runs.all()] == ["as-claimed"]
    (directory / "results.json").write_text("torn")
    (found,) = runs.all()
    assert "cannot be read" in found.facts.says
    assert HOSTILE not in found.facts.says


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(web: Web, browser: Browser, theme: str) -> None:
    context = browser.new_context(color_scheme="dark" if theme == "dark" else "light")
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    compare = "compare?a=synthetic/20261130T120000.000Z&b=synthetic/latest"
    files = "files/synthetic/20261130T120000.000Z"
    for path in ("", "matrix", "campaign/synthetic", compare, files):
        page.goto(web.url + path)
        found = Axe().run(page)
        assert found.violations_count == 0, f"/{path}\n{found.generate_report()}"
    assert not [text for text in errors if "favicon" not in text], errors
    context.close()


@pytest.mark.browser
def test_from_the_index_to_a_comparison_with_the_keyboard(web: Web, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(web.url)
    page.get_by_label("Compare synthetic/20261130T120000.000Z as A").focus()
    page.keyboard.press("Space")
    page.get_by_label("Compare synthetic/20261130T130000.000Z as B").focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Compare A and B").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Two runs").wait_for()
    page.get_by_label("lockhavoc").or_(page.get_by_role("link", name="lockhavoc")).first.click()
    page.get_by_label("verdict").select_option("violation")
    page.get_by_role("button", name="Show").click()
    page.get_by_text("2 of 5 runs").wait_for()
    context.close()
