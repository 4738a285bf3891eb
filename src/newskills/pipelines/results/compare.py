# SPDX-License-Identifier: Apache-2.0
"""What `ns compare A B …` does: is one run better than another, and by how much, sample by sample."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from newskills.config.command_line import Parsed
from newskills.pipelines.json_output import print_json
from newskills.pipelines.options import doc, split_names

if TYPE_CHECKING:
    from newskills.view.comparison import Comparison


class CompareCommandOptions(Struct, frozen=True, kw_only=True):
    runs: Annotated[
        list[str],
        doc("folders of results; the first is what the others are compared with", {"positional": True}),
    ]
    benchmarks: Annotated[str | None, doc("only these, comma separated (default: all that both have)")] = None
    allow: Annotated[
        str | None, doc("compare although the runs differ in it: data, prompt, grader, comma separated")
    ] = None
    margin: Annotated[
        float, Meta(ge=0, description="points that a run may lose and still count as not worse (non-inferiority)")
    ] = 1.0
    fail_if: Annotated[
        list[str],
        doc("exit with code 3 where this holds: worse, or 'gsm8k < -1.0' (a difference in points); repeatable"),
    ] = []
    flips: Annotated[
        int, Meta(ge=0, description="how many problems that changed are listed for each benchmark")
    ] = 5
    json: Annotated[bool, doc("print everything as JSON, with all problems that changed")] = False
    html: Annotated[str | None, doc("also write a self-contained page to this file")] = None


def run(parsed: Parsed[CompareCommandOptions]) -> int:
    from newskills.base.store import atomic_write
    from newskills.view.comparison import gate, shown
    from newskills.view.documents.document import as_html

    options = parsed.options
    conditions = [gate.parse_condition(text) for text in options.fail_if]
    comparison = _compute_comparison(options)
    if options.json:
        print_json(comparison)
    else:
        sys.stdout.write(shown.as_text(comparison, options.flips))
    if options.html:
        page = as_html("Comparison", shown.comparison_blocks(comparison, max(options.flips, 100)))
        with atomic_write(Path(options.html)) as file:
            file.write(page.encode())
    gate.check_conditions(conditions, comparison)
    return 0


def compare_runs(parsed: Parsed[CompareCommandOptions]) -> Comparison:
    """Compare for Python, and return the figures; raises GateError where a condition of `fail_if` holds."""
    from newskills.view.comparison import gate

    conditions = [gate.parse_condition(text) for text in parsed.options.fail_if]
    comparison = _compute_comparison(parsed.options)
    gate.check_conditions(conditions, comparison)
    return comparison


def _compute_comparison(options: CompareCommandOptions) -> Comparison:
    from newskills.view.comparison import CompareOptions, compare_run_folders
    from newskills.view.comparison.ingredients import must_agree

    wanted = split_names(options.benchmarks)
    how = CompareOptions(benchmarks=wanted, allow=must_agree(options.allow or ""), margin=options.margin)
    return compare_run_folders([Path(name) for name in options.runs], how)
