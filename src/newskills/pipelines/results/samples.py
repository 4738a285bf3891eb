# SPDX-License-Identifier: Apache-2.0
"""What `ns samples DIR` does: read samples of a run in the terminal."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct

from newskills.base.records import Cause, Outcome
from newskills.config.command_line import Parsed
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import doc, split_names

if TYPE_CHECKING:
    from newskills.view.samples import SelectedSample


class SamplesOptions(Struct, frozen=True, kw_only=True):
    results_dir: Annotated[str, doc("folder of results", {"positional": True})]
    benchmarks: Annotated[str | None, doc("only these, comma separated (default: all)")] = None
    outcome: Annotated[Outcome | None, doc("only samples with this outcome")] = None
    cause: Annotated[Cause | None, doc("only wrong or unscored samples with this cause")] = None
    seed: Annotated[int | None, doc("only samples of this seed")] = None
    subset: Annotated[str | None, doc("only samples of this subset of the benchmark")] = None
    id: Annotated[str | None, doc("only the samples of this problem")] = None
    search: Annotated[str | None, doc("only samples with this text in the question, the reply or an answer")] = (
        None
    )
    where: Annotated[
        str | None, doc("only samples for which this filter holds: 'outcome = wrong and tokens > 2000'")
    ] = None
    number: Annotated[int, Meta(ge=1, description="how many samples are shown at most", extra={"short": "-n"})] = 5
    full: Annotated[bool, doc("show long texts to their end")] = False
    json: Annotated[bool, doc("print the records as JSON lines")] = False


def run(parsed: Parsed[SamplesOptions]) -> int:
    from newskills.view.samples import as_text, counts_line

    options, notes = parsed.options, list[str]()
    samples = _select_at_most(options, notes, options.number + 1)
    for note in notes:
        print_note(note)
    shown = samples[: options.number]
    if options.json:
        for sample in shown:
            sys.stdout.buffer.write(msgspec.json.encode(sample) + b"\n")
        return 0
    texts = [f"{as_text(sample, full=options.full)}\n" for sample in shown]
    _show_paged(f"{''.join(texts)}{counts_line(samples, options.number)}\n")
    return 0


def select_samples(parsed: Parsed[SamplesOptions]) -> list[SelectedSample]:
    """Return, for Python, the samples that fit, `number` at most."""
    return _select_at_most(parsed.options, [], parsed.options.number)


def _select_at_most(options: SamplesOptions, notes: list[str], most: int) -> list[SelectedSample]:
    from newskills.view.samples import SampleFilter, iter_samples

    selection = SampleFilter(
        benchmarks=split_names(options.benchmarks),
        outcome=options.outcome,
        cause=options.cause,
        seed=options.seed,
        subset=options.subset,
        id=options.id,
        search=options.search,
        where=options.where,
    )
    return list(islice(iter_samples(Path(options.results_dir), selection, notes), most))


def _show_paged(text: str) -> None:
    """Show a text by $PAGER or less where a person reads, and as it is in pipes and files."""
    if sys.stdout.isatty():
        import pydoc

        pydoc.pager(text)
    else:
        sys.stdout.write(text)
