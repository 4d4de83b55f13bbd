"""Which file is in which language, and the grammars, which are an extra.

    language_of("app/worker.ts")      # "typescript"
    parse("typescript", path, text)   # a Source; MissingGrammar says what to install

Traps: grammars load when the first file of their language comes, so an audit of Python alone needs
none of them and pays for none.
"""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from checkers.audit.languages.golang import Go
from checkers.audit.languages.java import Java
from checkers.audit.languages.javascript import JavaScript
from checkers.audit.languages.lowering import Lowering
from checkers.audit.languages.lua import Lua
from checkers.audit.languages.ruby import Ruby
from checkers.audit.languages.tree import Source

_SUFFIXES = {
    ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascript",
    ".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "tsx", ".go": "go",
    ".java": "java", ".rb": "ruby", ".rake": "ruby", ".lua": "lua", ".sql": "sql",
}  # fmt: skip
_GRAMMARS: dict[str, tuple[str, str, type[Lowering]]] = {
    "javascript": ("tree_sitter_javascript", "language", JavaScript),
    "typescript": ("tree_sitter_typescript", "language_typescript", JavaScript),
    "tsx": ("tree_sitter_typescript", "language_tsx", JavaScript),
    "go": ("tree_sitter_go", "language", Go),
    "java": ("tree_sitter_java", "language", Java),
    "ruby": ("tree_sitter_ruby", "language", Ruby),
    "lua": ("tree_sitter_lua", "language", Lua),
}
_SPELLED = {
    "javascript": "JavaScript", "typescript": "TypeScript", "tsx": "TypeScript", "go": "Go",
    "java": "Java", "ruby": "Ruby", "lua": "Lua", "sql": "SQL",
}  # fmt: skip
INSTALL = "pip install 'lockhavoc[audit]'"


class MissingGrammar(Exception):
    """The parser of a language is not installed; the text says what to install."""

    def __init__(self, language: str, module: str) -> None:
        super().__init__(
            f"{_SPELLED[language]} is read with {module}, which is not installed: {INSTALL}"
        )


def language_of(path: str) -> str:
    """The language of a file by its name; "" if it is none of these."""
    return _SUFFIXES.get(PurePosixPath(path).suffix.lower(), "")


@cache
def _parser(language: str) -> tuple[Any, type[Lowering]]:
    package, function, lowering = _GRAMMARS[language]
    for module in ("tree_sitter", package):
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise MissingGrammar(language, module.replace("_", "-")) from error
    core = importlib.import_module("tree_sitter")
    grammar = getattr(importlib.import_module(package), function)()
    return core.Parser(core.Language(grammar)), lowering


def parse(language: str, path: str, text: str) -> Source:
    """The tree of one file; raises MissingGrammar where the extra is not installed."""
    parser, lowering = _parser(language)
    return lowering(path, parser.parse(text.encode("utf-8"))).source
