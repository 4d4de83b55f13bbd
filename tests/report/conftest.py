"""A real Chromium for the tests of pages; a skip says why."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Nothing of the browser's own may go to the network either, and CI runs as root.
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]


def chromium() -> str | None:
    """The browser of this machine: $LOCKHAVOC_CHROMIUM, else the first on PATH."""
    named = os.environ.get("LOCKHAVOC_CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Ends with its file: while it lives, Playwright's own event loop counts as running in this
    thread, and `asyncio.run` of a later test would be refused."""
    path = chromium()
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} on PATH; apt install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGS)
        yield browser
        browser.close()


def wait_ready(page: Page) -> None:
    """Until the timeline can be used and the plots below it are drawn.  (The page's policy forbids
    the eval of wait_for_function.)"""
    page.locator("html[data-ready][data-plotted]").wait_for(state="attached", timeout=120_000)


@dataclass
class Opened:
    """A page with what it did.  requests: everything but the page itself."""

    page: Page
    context: BrowserContext
    url: str
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def quiet(self) -> None:
        """Nothing was loaded from anywhere, nothing went wrong."""
        assert not self.errors, self.errors
        outside = [url for url in self.requests if url.split(":")[0] not in ("data", "blob")]
        assert outside == [self.url], outside


Open = Callable[..., Opened]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """``opened(html, theme="dark")``: the page in a window of 1280 by 900 pixels, from file://."""
    contexts: list[BrowserContext] = []

    def open_it(
        html: str, *, theme: str = "light", ready: bool = True, scripts: bool = True
    ) -> Opened:
        path = tmp_path / f"page-{len(contexts)}.html"
        path.write_text(html, encoding="utf-8")
        context = browser.new_context(
            color_scheme="dark" if theme == "dark" else "light",
            viewport={"width": 1280, "height": 900},
            java_script_enabled=scripts,
        )
        contexts.append(context)
        found = Opened(context.new_page(), context, path.as_uri())
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.on("pageerror", lambda error: found.errors.append(str(error)))
        found.page.on(
            "console",
            lambda line: found.errors.append(line.text) if line.type in ("error",) else None,
        )
        found.page.goto(found.url)
        if ready and scripts:
            wait_ready(found.page)
        return found

    yield open_it
    for context in contexts:
        context.close()
