"""Pages from templates: everything escaped and masked, undefined names are errors, assets inlined.

    page("report.html.j2", title="...", ...)

A page is one file that loads nothing: its style and scripts stand in it, and a content security
policy lets exactly those run, by their hashes.  So even a string that slipped through every escape
could neither run nor call home.  Every string that a template prints goes through ``escape.safe``
(one line, no control characters, no secrets) and then through the escape for HTML.

Trap: ``<`` must not appear in JSON inside a script element, whatever the strings say;
``script_json`` writes it as an escape.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from harness.report.escape import safe

HERE = Path(__file__).parent
ASSETS = HERE / "assets"


@cache
def environment() -> Environment:
    """The environment of all templates."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_shown,
    )
    made.filters["script_json"] = script_json
    return made


def _shown(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Markup):
        return safe(value)
    return value


@cache
def asset(name: str) -> str:
    """The text of a file in assets/."""
    text = (ASSETS / name).read_text(encoding="utf-8")
    assert "</script" not in text.lower(), name
    assert "</style" not in text.lower(), name
    return text


def script_json(value: Any) -> Markup:
    """JSON that may stand in a script element."""
    text = msgspec.json.encode(value).decode()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704 - every character with a meaning in HTML was just replaced


def render(template: str, **values: Any) -> str:
    """A small document from a template, nothing inlined."""
    return environment().get_template(template).render(**values)


def base64_text(text: str) -> Markup:
    """Base64 for a data block, as it is; ValueError if it is anything else."""
    if not text.isascii() or any(char in text for char in "<>&\"'"):
        raise ValueError("not base64")
    return Markup(text)  # noqa: S704 - nothing in it has a meaning in HTML


def page(template: str, *, styles: list[str], scripts: list[str], **values: Any) -> str:
    """A whole page.  styles, scripts: names of assets, inlined in this order."""
    style = "\n".join(asset(name) for name in styles)
    code = [asset(name) for name in scripts]
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src '{_hash(style)}'",
            "script-src " + (" ".join(f"'{_hash(text)}'" for text in code) or "'none'"),
            "img-src data:",
            "form-action 'self'",
            "base-uri 'none'",
        ]
    )
    return (
        environment()
        .get_template(template)
        .render(
            policy=Markup(policy),  # noqa: S704 - made here; masking could take a hash for a secret
            style=Markup(style),  # noqa: S704 - a file of this package
            scripts=[Markup(text) for text in code],  # noqa: S704 - files of this package
            **values,
        )
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
