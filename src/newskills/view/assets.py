# SPDX-License-Identifier: Apache-2.0
"""The files of the page: known by name, so that an address can ask for no other file."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

SCRIPTS = (
    "dom.js",
    "words.js",
    "api.js",
    "runs.js",
    "plot.js",
    "text.js",
    "markdown.js",
    "faces.js",
    "columns.js",
    "matrix.js",
    "overview.js",
    "benchmark.js",
    "samples.js",
    "sample.js",
    "comparison.js",
    "training.js",
    "load_tests.js",
    "jobs.js",
    "app.js",
)
"""Modules of the page, each after those that it imports."""
LIBRARIES = ("katex.min.js", "markdown-it.min.js")
"""Of others, as they are published, each with its licence beside it."""
ASSET_NAMES = frozenset({"index.html", "style.css", "icon.svg", *LIBRARIES, *SCRIPTS})
CONTENT_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "js": "text/javascript; charset=utf-8",
}
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([\w.]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|const|class) (\w+))", re.MULTILINE)


@cache
def read_asset(name: str) -> bytes | None:
    """Read a file of the page; None for a name that is none."""
    if name in ASSET_NAMES:
        return files(__package__).joinpath("static", name).read_bytes()
    return None


def script_bundle() -> bytes:
    """Join all modules to one script, each in a scope of its own: a browser loads no modules from `file://`."""
    parts = []
    for name in SCRIPTS:
        text = (read_asset(name) or b"").decode()
        exported = ", ".join(match[2] for match in _EXPORT.finditer(text))
        body = _EXPORT.sub(r"\1", _IMPORT.sub(r'const \1 = modules["\2"];', text))
        parts.append(f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n')
    return f'"use strict";\nconst modules = {{}};\n{"".join(parts)}'.encode()
