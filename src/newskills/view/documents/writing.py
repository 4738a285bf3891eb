# SPDX-License-Identifier: Apache-2.0
"""A report as two files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from newskills.base.store import atomic_write
from newskills.view.documents.document import as_html, as_markdown
from newskills.view.documents.report import ReportOptions, report_blocks


def write_report(folders: Sequence[Path], output: Path, title: str, options: ReportOptions) -> list[Path]:
    """Write `output` with the endings .html and .md, of which it may have one already; return both, in that order.
    Raises DataError, StorageError."""
    blocks = report_blocks(folders, options)
    if output.suffix in (".html", ".md"):
        output = output.with_suffix("")
    paths = [output.with_name(f"{output.name}.html"), output.with_name(f"{output.name}.md")]
    for path, text in zip(paths, (as_html(title, blocks), as_markdown(title, blocks)), strict=True):
        with atomic_write(path) as file:
            file.write(text.encode())
    return paths
