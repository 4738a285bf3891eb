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
    "plot.js",
    "text.js",
    "columns.js",
    "overview.js",
    "benchmark.js",
    "samples.js",
    "sample.js",
    "comparison.js",
    "training.js",
    "jobs.js",
    "app.js",
)
"""Modules of the page, each after those that it imports."""
NAMES = frozenset({"index.html", "style.css", "katex.min.js", "icon.svg", *SCRIPTS})
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "js": "text/javascript; charset=utf-8",
}
_IMPORT = re.compile(r"^import .*?;\n", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


@cache
def asset(name: str) -> bytes | None:
    """None for a name that is no file of the page."""
    return files(__package__).joinpath("static", name).read_bytes() if name in NAMES else None


def bundle() -> bytes:
    """All modules as one script: a browser loads no modules from `file://`."""
    texts = [(asset(name) or b"").decode() for name in SCRIPTS]
    joined = "\n".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts)
    return f'"use strict";\n(() => {{\n{joined}\n}})();\n'.encode()
