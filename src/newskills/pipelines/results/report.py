# SPDX-License-Identifier: Apache-2.0
"""What `ns report DIR` does: results as one HTML file that stands alone, and as Markdown."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from newskills.config.command_line import Parsed
from newskills.pipelines.options import doc, optional_path


class ReportCommandOptions(Struct, frozen=True, kw_only=True):
    results_dirs: Annotated[
        list[str], doc("folders of results; with several, each is compared with the first", {"positional": True})
    ]
    output: Annotated[
        str | None, doc("where the report goes, without an ending (default: report in the first folder)")
    ] = None
    title: Annotated[str, doc("heading of the report")] = "Evaluation report"
    contamination_file: Annotated[
        str | None, doc("what check_contamination wrote about the test problems: adds the score of the clean ones")
    ] = None
    spread: Annotated[bool, doc("grade by strict and lenient extraction, too (if the grader has them)")] = True


def run(parsed: Parsed[ReportCommandOptions]) -> int:
    for path in write_results_report(parsed):
        sys.stdout.write(f"{path}\n")
    return 0


def write_results_report(parsed: Parsed[ReportCommandOptions]) -> list[Path]:
    """Write the report for Python, and return the files, HTML first."""
    from newskills.view.documents.report import ReportOptions
    from newskills.view.documents.writing import write_report

    options = parsed.options
    folders = [Path(name) for name in options.results_dirs]
    how = ReportOptions(
        contamination_file=optional_path(options.contamination_file),
        spread=options.spread,
    )
    return write_report(folders, Path(options.output or folders[0] / "report"), options.title, how)
