"""Pages are one file: all inlined, a policy that lets only that run, third parties pinned."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from harness.report.html import SCRIPTS, STYLES, html
from harness.report.templating import ASSETS, asset, environment, script_json
from tests.report.synthetic import synthetic

UPLOT = {  # version 1.6.32 as published
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}


@pytest.mark.parametrize("name", UPLOT)
def test_the_vendored_library_is_what_was_published(name: str) -> None:
    assert hashlib.sha256((ASSETS / "uplot" / name).read_bytes()).hexdigest() == UPLOT[name]


def test_the_policy_names_exactly_what_the_page_holds() -> None:
    run = synthetic(ops=30)
    text = html(run.report, run.history, run.context)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    allowed = set(re.findall(r"sha256-[A-Za-z0-9+/=]+", policy[1]))
    parts = re.findall(r"<script>(.*?)</script>", text, re.S) + re.findall(
        r"<style>(.*?)</style>", text, re.S
    )
    held = {
        f"sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}"
        for part in parts
    }
    assert held == allowed
    assert len(parts) == len(SCRIPTS) + 1
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]


def test_the_page_names_no_address() -> None:
    run = synthetic(ops=30)
    text = html(run.report, run.history, run.context)
    for name in [*STYLES, *SCRIPTS]:
        text = text.replace(asset(name), "")
    assert not re.findall(r"(?:https?:)?//[a-z]", text)
    assert " style=" not in text
    assert not re.findall(r"\son[a-z]+=", text)


def test_json_in_a_script_cannot_end_it() -> None:
    text = script_json({"says": "</script><!--\u2028&"})
    assert not set(text) & set("<>&\u2028")


def test_everything_printed_is_cleaned_masked_and_escaped() -> None:
    page = environment().from_string("<p>{{ text }}</p>")
    assert page.render(text="\x1b<b> password=hunter2") == "<p>\\x1b&lt;b&gt; password=***</p>"
