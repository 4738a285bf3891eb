# SPDX-License-Identifier: Apache-2.0
"""Samples as text for a terminal: what was asked, what the model said, and what the grader made of it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from unicodedata import east_asian_width

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError, UnknownNameError, UserError
from newskills.base.records import Cause, Outcome, Row
from newskills.base.tables import WIDTH
from newskills.base.terminal import printable
from newskills.run.reporting.counted import subsets_of
from newskills.run.reporting.results import BenchmarkResults, advice_to_name_a_run, list_results, seed_of
from newskills.run.reporting.summarize import UngradedError
from newskills.view.comparison.records import JudgedRow, read_rows_with_verdicts, read_whole_rows
from newskills.view.filters.columns import SampleFacts
from newskills.view.filters.matching import SamplePredicate, filter_predicate, sample_filter
from newskills.view.scans.files import ScannedFile, scan_columns

MAX_TEXT_CHARS = 4000
"""Characters of a text that are shown, unless all are asked for."""
_LABEL_WIDTH = 11
_TEXT_FIELDS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "problem", "prompt", "input", "messages"),
    "reasoning": ("reasoning_content", "_full_generation"),
    "reply": ("generation",),
    "expected": ("expected_answer",),
    "extracted": ("predicted_answer",),
    "judge": ("judgement",),
    "why": ("why", "detailed_error", "error"),
}
"""What is shown, and the fields of a record of which the first that is there tells it."""


class SampleFilter(Struct, frozen=True, kw_only=True):
    """Which samples; None = any. `search`: a text in the question, the reply or the answers, whatever its case;
    `where`: a filter (`view.filters.grammar`)."""

    benchmarks: tuple[str, ...] = ()
    outcome: Outcome | None = None
    cause: Cause | None = None
    seed: int | None = None
    subset: str | None = None
    id: str | None = None
    search: str | None = None
    where: str | None = None


class SelectedSample(Struct, frozen=True, kw_only=True):
    benchmark: str
    seed: int | None
    outcome: Outcome | Literal["ungraded"]
    cause: Cause | None
    record: Row


def iter_samples(folder: Path, selection: SampleFilter, notes: list[str]) -> Iterator[SelectedSample]:
    """Yield the selected samples in the order of the files. What cannot be read goes into `notes`.

    Raises DataError where nothing is there, UnknownNameError for a benchmark that is not, or a column of the filter,
    ConfigError for a filter that cannot be read.
    """
    items = list_results(folder)
    if not any(item.files for item in items) and (advice := advice_to_name_a_run(folder)):
        raise DataError(f"{folder} has no results: {advice}")
    if not items:
        raise DataError(
            f"{folder} has no results: neither output*.jsonl, nor eval-results/<benchmark>/output*.jsonl."
        )
    chosen = None
    if selection.where is not None:
        chosen = _filter_predicate(folder, items, selection.where)
    names = [item.benchmark for item in items]
    for name in selection.benchmarks:
        if name not in names:
            raise UnknownNameError("benchmark in the results", name, names)
    for item in items:
        if not selection.benchmarks or item.benchmark in selection.benchmarks:
            for sample, score in _of_benchmark(item, selection, notes):
                if chosen is None or chosen(_sample_facts(folder, sample, score)):
                    yield sample


def _filter_predicate(folder: Path, items: Sequence[BenchmarkResults], text: str) -> SamplePredicate:
    """Return the function of a filter. Raises ConfigError, UnknownNameError."""
    run = folder.resolve().name
    columns = scan_columns(
        ScannedFile(run, item.benchmark, seed_of(file), file) for item in items for file in item.files
    )
    return filter_predicate(sample_filter(text, columns), columns)


def _sample_facts(folder: Path, sample: SelectedSample, score: float | None) -> SampleFacts:
    run = folder.resolve().name
    return SampleFacts(run, sample.benchmark, sample.seed, sample.outcome, sample.cause, score, sample.record)


def _of_benchmark(
    item: BenchmarkResults, selection: SampleFilter, notes: list[str]
) -> Iterator[tuple[SelectedSample, float | None]]:
    """Yield the samples with their scores."""
    if not item.files:
        notes.append(f"{item.benchmark} has no finished output files in {item.folder}.")
        return
    try:
        for judged in read_rows_with_verdicts(item, notes):
            if _is_selected(judged, selection):
                sample = SelectedSample(
                    benchmark=item.benchmark,
                    seed=judged.seed,
                    outcome=judged.sample.outcome,
                    cause=judged.sample.cause,
                    record=judged.row,
                )
                yield sample, judged.sample.score
    except UngradedError:
        if selection.outcome is None and selection.cause is None:
            yield from ((sample, None) for sample in _ungraded_samples(item, selection))
    except UserError as error:
        notes.append(f"{item.benchmark}: {error.message}")


def _ungraded_samples(item: BenchmarkResults, selection: SampleFilter) -> Iterator[SelectedSample]:
    """Yield the samples of files that nobody has graded, such as those of a gateway."""
    for file in item.files:
        seed = seed_of(file)
        for row in read_whole_rows(item, file):
            if _is_wanted_row(row, seed, selection):
                yield SelectedSample(
                    benchmark=item.benchmark, seed=seed, outcome="ungraded", cause=None, record=row
                )


def _is_selected(judged: JudgedRow, selection: SampleFilter) -> bool:
    sample = judged.sample
    if selection.outcome not in (None, sample.outcome) or selection.cause not in (None, sample.cause):
        return False
    return _is_wanted_row(judged.row, judged.seed, selection)


def _is_wanted_row(row: Row, seed: int | None, selection: SampleFilter) -> bool:
    if selection.seed not in (None, seed) or selection.id not in (None, str(row.get("id"))):
        return False
    if selection.subset is not None and selection.subset not in subsets_of(row):
        return False
    return selection.search is None or _holds_text(row, selection.search.casefold())


def _holds_text(row: Row, text: str) -> bool:
    fields = [name for names in _TEXT_FIELDS.values() for name in names]
    return any(text in _field_text(row[name]).casefold() for name in fields if row.get(name) is not None)


def as_text(sample: SelectedSample, *, full: bool = False) -> str:
    """Render a sample in lines of at most 80 columns; what a terminal would obey is shown as escapes."""
    return "\n".join(_sample_lines(sample, full)) + "\n"


def _sample_lines(sample: SelectedSample, full: bool) -> Iterator[str]:
    row = sample.record
    title = f"{sample.benchmark} · {row.get('id')}"
    if sample.seed is not None:
        title += f" · seed {sample.seed}"
    title += f" · {sample.outcome}"
    if sample.cause is not None:
        title += f" ({sample.cause})"
    yield from textwrap.wrap(printable(title).replace("\n", "\\n"), WIDTH)
    yield "─" * WIDTH
    for label, names in _TEXT_FIELDS.items():
        value = next((row[name] for name in names if row.get(name) not in (None, "")), None)
        if value is not None:
            yield from _labelled_lines(label, _field_text(value), full)
    facts = [str(row[name]) for name in ("grader", "finish_reason") if row.get(name)]
    if (tokens := row.get("num_generated_tokens")) is not None:
        facts.append(f"{tokens} tokens")
    if facts:
        yield from _labelled_lines("", ", ".join(facts), full)


def _labelled_lines(label: str, text: str, full: bool) -> Iterator[str]:
    hidden = 0 if full else max(0, len(text) - MAX_TEXT_CHARS)
    if hidden:
        text = text[:MAX_TEXT_CHARS]
    lines = _wrap_lines(printable(text).expandtabs(4), WIDTH - _LABEL_WIDTH)
    if hidden:
        lines.append(f"… {hidden:,} more characters; --full shows them")
    for number, line in enumerate(lines):
        shown_label = label if number == 0 else ""
        yield f"{shown_label:<{_LABEL_WIDTH}}{line}".rstrip()


def _wrap_lines(text: str, width: int) -> list[str]:
    """Wrap every line of `text` at `width` columns, broken at blanks where all characters are narrow."""
    lines: list[str] = []
    for line in text.split("\n"):
        if any(map(_is_wide, line)):
            lines += _in_columns(line, width)
        else:
            lines += textwrap.wrap(line, width, replace_whitespace=False, drop_whitespace=False) or [""]
    return lines


def _is_wide(character: str) -> bool:
    return east_asian_width(character) in "WF"


def _in_columns(line: str, width: int) -> Iterator[str]:
    """Yield pieces of a line with characters that take two columns (Unicode Standard Annex 11)."""
    piece, taken = "", 0
    for character in line:
        columns = 2 if _is_wide(character) else 1
        if taken + columns > width:
            yield piece
            piece, taken = "", 0
        piece, taken = piece + character, taken + columns
    yield piece


def _field_text(value: Any) -> str:
    """Return the text of a field; messages as their texts with the role before each."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, dict) and "role" in part for part in value):
        return "\n".join(f"[{part['role']}] {_field_text(part.get('content'))}" for part in value)
    return msgspec.json.encode(value).decode("utf-8", "replace")


def counts_line(samples: Sequence[SelectedSample], most: int) -> str:
    """Return the last line: how many were shown, and how to see others."""
    if not samples:
        return "No sample fits."
    if len(samples) > most:
        return f"{most} shown; there are more: -n {2 * most}"
    return f"{len(samples)} shown; these are all"
