# SPDX-License-Identifier: Apache-2.0
"""What `ns regrade DIR` does: new verdicts for finished records, without new generation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.config.command_line import Parsed
from newskills.config.values import parse_value
from newskills.pipelines.json_output import print_json
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import doc, optional_path, split_names

if TYPE_CHECKING:
    from newskills.view.comparison.regrade import Reading, Regraded, RegradeOptions


class RegradeCommandOptions(Struct, frozen=True, kw_only=True):
    results_dir: Annotated[str, doc("folder of results", {"positional": True})]
    benchmarks: Annotated[str | None, doc("only these, comma separated (default: all)")] = None
    grader: Annotated[
        str | None,
        doc("grader to use, NAME or NAME@VERSION (default: the grader of the records, in its present version)"),
    ] = None
    strict: Annotated[bool, doc("an answer counts only in the form that was asked for")] = False
    lenient: Annotated[bool, doc("an answer counts in whatever form it is found")] = False
    spread: Annotated[
        bool, doc("show the scores of strict, usual and lenient extraction (if the grader has them)")
    ] = True
    output_dir: Annotated[
        str | None, doc("write the records with their new verdicts there (default: show, and keep nothing)")
    ] = None
    flips: Annotated[
        int, Meta(ge=0, description="how many samples with another verdict are listed for each benchmark")
    ] = 10
    json: Annotated[bool, doc("print everything as JSON, with all samples whose verdict changed")] = False


def run(parsed: Parsed[RegradeCommandOptions]) -> int:
    from newskills.view.comparison.regrade_shown import as_text

    notes: list[str] = []
    done = _regrade_folder(parsed, notes)
    for note in notes:
        print_note(note)
    if parsed.options.json:
        print_json(done)
        return 0
    sys.stdout.write("\n".join(as_text(item, parsed.options.flips) for item in done))
    if parsed.options.output_dir:
        sys.stdout.write(f"\nnext: ns summarize_results {parsed.options.output_dir}\n")
    return 0


def regrade_results(parsed: Parsed[RegradeCommandOptions]) -> list[Regraded]:
    """Regrade for Python, and return what changed in each benchmark."""
    return _regrade_folder(parsed, [])


def _regrade_folder(parsed: Parsed[RegradeCommandOptions], notes: list[str]) -> list[Regraded]:
    from newskills.view.comparison.regrade import regrade_run

    return regrade_run(Path(parsed.options.results_dir), _regrade_options(parsed), notes)


def _regrade_options(parsed: Parsed[RegradeCommandOptions]) -> RegradeOptions:
    from newskills.view.comparison.regrade import RegradeOptions

    options = parsed.options
    reading: Reading | None = None
    if options.strict and options.lenient:
        raise ConfigError("--strict and --lenient exclude each other; the spread shows both.")
    if options.strict:
        reading = "strict"
    elif options.lenient:
        reading = "lenient"
    return RegradeOptions(
        benchmarks=split_names(options.benchmarks),
        grader=options.grader,
        config={key: parse_value(str(text)) for key, text in parsed.overrides.items()},
        reading=reading,
        spread=options.spread,
        output_dir=optional_path(options.output_dir),
    )
