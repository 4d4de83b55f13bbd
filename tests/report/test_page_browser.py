"""report.html in a real Chromium: offline, free of errors, right pixels, keyboard, axe, escapes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped] # has none
from playwright.sync_api import Page

from harness.core.history import History, Op
from harness.core.protocols import CheckContext
from harness.report.html import html
from tests.harness.reports import HOSTILE, SECRET, full, hostile
from tests.report.conftest import Open, wait_ready
from tests.report.synthetic import Run, synthetic

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic(ops=300)


@pytest.fixture(scope="module")
def text(run: Run) -> str:
    return html(run.report, run.history, run.context, nodes=["redis1"])


def pixel(page: Page, time_ns: int, row: str, lane: str) -> list[int]:
    """Red, green, blue of the timeline at a time, in the middle of a lane of a worker's row."""
    found: list[int] = page.evaluate(
        """([ms, label, lane]) => {
          const line = LH.page.line, row = line.rows().find((r) => r.label === label);
          const ratio = devicePixelRatio, canvas = document.getElementById("lanes");
          const [top, tall] = lane ? line.size[lane] : [0, row.h];
          const x = line.x(ms), y = row.y + top + tall / 2;
          const dot = canvas.getContext("2d").getImageData(x * ratio, y * ratio, 1, 1).data;
          return [dot[0], dot[1], dot[2]];
        }""",
        [time_ns / 1e6, row, lane],
    )
    return found


def colour(page: Page, name: str) -> list[int]:
    text: str = page.evaluate("(name) => LH.colour(name)", name)
    return [int(part) for part in text.strip("rgb()").split(",")]


def near(found: list[int], wanted: list[int]) -> bool:
    return all(abs(a - b) <= 12 for a, b in zip(found, wanted, strict=True))


def show(page: Page, start_ns: int, end_ns: int) -> None:
    page.evaluate(
        "([a, b]) => { LH.page.line.show(a, b); LH.page.line.paint(); }",
        [start_ns / 1e6, end_ns / 1e6],
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_opens_offline_without_errors_and_axe_finds_nothing(
    opened: Open, text: str, theme: str
) -> None:
    at = opened(text, theme=theme)
    found = Axe().run(at.page)
    assert found.violations_count == 0, found.generate_report()
    at.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    at.quiet()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_known_stands_where_it_must(opened: Open, text: str, run: Run, theme: str) -> None:
    page, truth = opened(text, theme=theme).page, run.truth
    paused, after = f"w{truth.worker}", f"w{truth.next_worker}"
    show(page, truth.granted_ns - 20_000_000, truth.stale_ns + 20_000_000)
    early, late = truth.granted_ns + 20_000_000, truth.next_granted_ns + 200_000
    blue, green, red = (colour(page, name) for name in ("hold", "lease", "over"))
    assert near(pixel(page, early, paused, "hold"), blue), "it believes, alone"
    assert near(pixel(page, early, paused, "lease"), green), "its lease runs"
    assert near(pixel(page, late, paused, "hold"), red), "two believe at once"
    assert near(pixel(page, late, after, "hold"), red), "two believe at once"
    assert near(pixel(page, late, after, "lease"), green), "the other has the lease"
    assert not near(pixel(page, late, paused, "lease"), green), "its own lease is over"
    assert not near(pixel(page, truth.granted_ns - 10_000_000, paused, "hold"), blue)
    fault = pixel(page, truth.pause_ns[0] + 30_000_000, "#0 worker-pause", "")
    outside = pixel(page, truth.pause_ns[0] - 5_000_000, "#0 worker-pause", "")
    assert not near(fault, outside), "the fault has a bar in its row"


def test_the_stale_write_is_marked_at_its_time(opened: Open, text: str, run: Run) -> None:
    page, truth = opened(text).page, run.truth
    show(page, truth.stale_ns - 3_000_000, truth.stale_ns + 3_000_000)
    red: int = page.evaluate(
        """(ms) => {
          const line = LH.page.line, row = line.rows().find((r) => r.kind === "resource");
          const [r, g, b] = LH.colour("over").match(/\\d+/g).map(Number);
          const data = document.getElementById("lanes").getContext("2d")
            .getImageData(line.x(ms) - 8, row.y, 16, row.h).data;
          let count = 0;
          for (let i = 0; i < data.length; i += 4) {
            const off = [r, g, b].reduce((sum, v, k) => sum + Math.abs(data[i + k] - v), 0);
            if (off < 60) count++;
          }
          return count;
        }""",
        truth.stale_ns / 1e6,
    )
    assert red > 15


def test_a_tooltip_tells_the_operation(opened: Open, text: str, run: Run) -> None:
    page, truth = opened(text).page, run.truth
    show(page, truth.granted_ns - 10_000_000, truth.stale_ns + 10_000_000)
    place: list[float] = page.evaluate(
        """([ms, label]) => {
          const line = LH.page.line, row = line.rows().find((r) => r.label === label);
          return [line.x(ms), row.y + line.size.hold[0] + 4];
        }""",
        [truth.granted_ns / 1e6 + 20, f"w{truth.worker}"],
    )
    page.locator("#lanes").hover(position={"x": place[0], "y": place[1]})
    tip = page.locator("#tip")
    tip.wait_for(state="visible")
    assert f"granted {truth.granted_ns // 1000 / 1000:.3f} ms" in tip.inner_text()
    assert "too long" in tip.inner_text()


def test_everything_can_be_done_from_the_keyboard(opened: Open, text: str, run: Run) -> None:
    at = opened(text)
    page = at.page

    def view() -> list[float]:
        found: list[float] = page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() =>"
            " done([LH.page.line.view.t0, LH.page.line.view.t1])))"
        )
        return found

    anomalies = sum(len(result.anomalies) for result in run.report.results)
    page.keyboard.press("n")
    assert "Anomaly " in page.locator("#now").inner_text()
    seen = {page.locator("#now").inner_text()}
    for _ in range(anomalies - 1):
        page.keyboard.press("n")
        seen.add(page.locator("#now").inner_text())
    assert len(seen) == anomalies, "each press shows another one"
    page.keyboard.press("p")
    assert page.locator("#now").inner_text() in seen
    page.locator("#chart").focus()
    page.keyboard.press("0")
    whole = view()
    page.keyboard.press("+")
    page.keyboard.press("+")
    near_ = view()
    assert near_[1] - near_[0] < 0.5 * (whole[1] - whole[0])
    page.keyboard.press("ArrowRight")
    assert view()[0] > near_[0]
    page.keyboard.press("ArrowLeft")
    assert abs(view()[0] - near_[0]) < 1e-6
    page.keyboard.press("-")
    page.keyboard.press("Home")
    assert view() == pytest.approx(whole)
    jump = page.locator("#anomalies [data-jump]").first
    jump.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "chart"
    at.quiet()


def test_the_mouse_pans_and_zooms(opened: Open, text: str) -> None:
    page = opened(text).page
    page.evaluate("LH.page.line.show(20, 120)")
    page.locator("#timeline").scroll_into_view_if_needed()
    box = page.locator("#lanes").bounding_box()
    assert box is not None
    x, y = box["x"] + 600, box["y"] + 100
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 200, y, steps=4)
    page.mouse.up()
    assert page.evaluate("LH.page.line.view.t0") > 21
    before = page.evaluate("LH.page.line.view.t1 - LH.page.line.view.t0")
    page.mouse.wheel(0, -240)
    page.evaluate(
        """(before) => new Promise((done) => {
          const look = () => LH.page.line.view.t1 - LH.page.line.view.t0 < before * .8
            ? done() : requestAnimationFrame(look);
          look();
        })""",
        before,
    )


def test_without_javascript_the_words_and_tables_are_there(
    opened: Open, text: str, run: Run
) -> None:
    page = opened(text, scripts=False).page
    rows = page.locator("#anomalies tbody tr")
    assert rows.count() == sum(len(result.anomalies) for result in run.report.results)
    for alike in page.locator("#anomalies details").all():
        assert alike.locator("table").is_hidden()
        alike.locator("summary").click()
        assert alike.locator("table").is_visible()
    assert page.locator("svg.sequence").first.is_visible()
    assert "needs JavaScript" in page.locator("#timeline").inner_text()
    assert page.locator("#chart").is_hidden()


def test_hostile_strings_stay_text(opened: Open) -> None:
    run = synthetic(ops=60)
    ops = [
        Op(op.index, op.time, op.process, op.type, HOSTILE if op.f == "write" else op.f, HOSTILE,
           {**op.value, "hold": f"{HOSTILE}{op.value['hold']}"},
           HOSTILE if op.type == "fail" else None)
        for op in run.history.ops
    ]  # fmt: skip
    report = hostile()
    named = [msgspec.structs.replace(report.results[0].anomalies[0], ops=[1, 3, 5])]
    report.results[0] = msgspec.structs.replace(report.results[0], anomalies=named)
    context = CheckContext(workers=4, faults=report.faults)
    text = html(report, History(ops, run.history.header), context, nodes=[HOSTILE])
    assert "<script>alert" not in text
    assert SECRET not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    at = opened(text)
    at.page.on("dialog", lambda dialog: at.errors.append(f"dialog {dialog.message}"))
    at.page.keyboard.press("n")
    at.page.locator("#lanes").hover(position={"x": 400, "y": 90})
    assert at.page.locator("img").count() == 0
    at.quiet()


def test_an_empty_run_has_a_page(opened: Open) -> None:
    at = opened(html(full(), History([]), CheckContext()))
    assert "No lock was granted" in at.page.locator("#waiting").inner_text()
    at.quiet()


def test_it_prints_in_light_colours(opened: Open, text: str) -> None:
    page = opened(text, theme="dark").page
    data = page.pdf(format="A4")
    assert data.startswith(b"%PDF")
    assert page.evaluate("LH.isDark()"), "dark again after printing"


def cpu_ms(session: Any) -> float:
    """CPU time of the page's main thread so far: other processes of a busy machine do not count."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration")) * 1000.0


@pytest.mark.parametrize(
    ("ops", "bytes_max", "ready_ms_max"),
    [
        (100_000, 2_000_000, 1_000),
        pytest.param(1_000_000, 15_000_000, 4_000, marks=pytest.mark.slow),
    ],
)
def test_big_runs_stay_small_and_quick(
    opened: Open, browser: Any, tmp_path: Any, ops: int, bytes_max: int, ready_ms_max: int
) -> None:
    run = synthetic(ops=ops, workers=8, judge=False)
    text = html(run.report, run.history, run.context)
    path = tmp_path / "big.html"
    path.write_text(text, encoding="utf-8")
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(path.as_uri())
    wait_ready(page)
    ready_ms = cpu_ms(session)
    wall_ms: float = page.evaluate("LH.readyMs")
    zooms = []
    for from_, to in ((0.0, 1.0), (0.4, 0.6), (0.495, 0.505), (0.0, 1.0)):
        page.evaluate("([a, b]) => LH.page.line.show(LH.page.line.end * a, LH.page.line.end * b)",
                      [from_, to])  # fmt: skip
        page.evaluate("LH.page.line.paint()")  # the first look at a level makes its summary
        costs = []
        for _ in range(3):  # the least: what else runs on the machine only adds
            before = cpu_ms(session)
            page.evaluate("LH.page.line.paint()")
            costs.append(cpu_ms(session) - before)
        zooms.append(min(costs))
    context.close()
    print(
        f"\n{ops} operations: {len(text) / 1e6:.2f} MB, plotted in {ready_ms:.0f} ms of CPU "
        f"(usable after {wall_ms:.0f} ms by the clock), "
        f"zoom {', '.join(f'{z:.0f}' for z in zooms)} ms of CPU"
    )
    assert len(text) <= bytes_max
    assert ready_ms <= ready_ms_max
    assert max(zooms) <= 100
