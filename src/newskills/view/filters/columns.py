# SPDX-License-Identifier: Apache-2.0
"""What there is to know of a sample, by name: columns of the table `samples`, and names in filters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from newskills.base.records import Row
from newskills.run.reporting.counted import subsets_of
from newskills.view.records import GOLD_FIELDS, QUESTION_FIELDS, as_text, gold_of, question_of

Kind = Literal["word", "text", "whole", "number", "flag", "time"]
"""word: few different texts; whole: 64 bits; number: a float; time: microseconds in UTC."""
MAX_WHOLE = 2**63 - 1
UNGRADED = "ungraded"


class SampleFacts(NamedTuple):
    """A record and what is known of it beside its fields. `score` None: it is unscored."""

    run: str
    benchmark: str
    seed: int | None
    outcome: str
    cause: str | None
    score: float | None
    row: Row


class Column(Struct, frozen=True, kw_only=True):
    """A column of a table, documented: `kind`, `unit` (empty: none) and `meaning` are part of the schema."""

    name: str
    kind: Kind
    meaning: str
    unit: str = ""


class SampleColumn(Column, frozen=True, kw_only=True):
    """A column of samples.

    fields   keys of a record that `values` reads
    values   samples → one value for each, None where it is missing; several (a list) only for `subset`
    long     a text of any length: tables have it where it is asked for by name
    """

    values: Callable[[Sequence[SampleFacts]], list[Any]]
    fields: tuple[str, ...] = ()
    long: bool = False


def text_or_none(value: Any) -> str | None:
    """Return a text as it is, anything else as JSON, None where there is nothing."""
    if value is None or isinstance(value, str):
        return value
    return as_text(value)


def whole_or_none(value: Any) -> int | None:
    """Return a whole number that 64 bits hold, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -MAX_WHOLE <= value <= MAX_WHOLE:
        return None
    return int(value)


def number_or_none(value: Any) -> float | None:
    """Return a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    if math.isfinite(number):
        return number
    return None


def _take_field(name: str, kind: type) -> Callable[[Sequence[SampleFacts]], list[Any]]:
    """Return a function that takes a field of records; it looks at single values only where one has another type."""
    convert = text_or_none if kind is str else whole_or_none
    usual = {kind, type(None)}

    def values(samples: Sequence[SampleFacts]) -> list[Any]:
        taken = [sample.row.get(name) for sample in samples]
        if set(map(type, taken)) <= usual:
            return taken
        return [convert(value) for value in taken]

    return values


def _sample_durations(samples: Sequence[SampleFacts]) -> list[Any]:
    taken = [sample.row.get("generation_time") for sample in samples]
    if set(map(type, taken)) == {float}:
        return taken
    return [_generation_seconds(sample) for sample in samples]


def _generation_seconds(sample: SampleFacts) -> float | None:
    row = sample.row
    if (taken := number_or_none(row.get("generation_time"))) is not None:
        return taken
    start, end = number_or_none(row.get("generation_start_time")), number_or_none(row.get("generation_end_time"))
    if start is not None and end is not None and end >= start:
        return end - start
    return None


def _subset_names(row: Row) -> str | None:
    return ", ".join(subsets_of(row)) or None


def _gold_text(row: Row) -> str | None:
    gold = gold_of(row)
    if gold:
        return gold[1]
    return None


def _first_text(*names: str) -> Callable[[Row], str | None]:
    def first(row: Row) -> str | None:
        return next((as_text(row[name]) for name in names if row.get(name) not in (None, "")), None)

    return first


def _read_each(read: Callable[[Row], Any]) -> Callable[[Sequence[SampleFacts]], list[Any]]:
    def values(samples: Sequence[SampleFacts]) -> list[Any]:
        return [read(sample.row) for sample in samples]

    return values


_CONVERSATIONS = ("conversation", "messages", "serialized_output")
SAMPLE_COLUMNS: Mapping[str, SampleColumn] = {
    column.name: column
    for column in (
        SampleColumn(
            name="run",
            kind="word",
            meaning="folder of the run, below the folder that was named",
            values=lambda samples: [sample.run for sample in samples],
        ),
        SampleColumn(
            name="benchmark",
            kind="word",
            meaning="benchmark, as `group.member` where it belongs to a group",
            values=lambda samples: [sample.benchmark for sample in samples],
        ),
        SampleColumn(
            name="seed",
            kind="whole",
            meaning="seed of the output file; null: the run has no seeds",
            values=lambda samples: [sample.seed for sample in samples],
        ),
        SampleColumn(
            name="id",
            kind="text",
            meaning="id of the problem; `line N` where the record has none",
            fields=("id",),
            values=_take_field("id", str),
        ),
        SampleColumn(
            name="subset",
            kind="word",
            meaning="subsets of the benchmark that the sample counts for, comma separated",
            fields=("subset_for_metrics",),
            values=_read_each(_subset_names),
        ),
        SampleColumn(
            name="outcome",
            kind="word",
            meaning="correct, wrong, no_answer, unscored, or ungraded",
            values=lambda samples: [sample.outcome for sample in samples],
        ),
        SampleColumn(
            name="cause",
            kind="word",
            meaning="why it is not correct: model, truncation, provider, judge, …",
            values=lambda samples: [sample.cause for sample in samples],
        ),
        SampleColumn(
            name="score",
            kind="number",
            unit="share, 0–1",
            meaning="score of the sample in the benchmark's main score; null: unscored",
            values=lambda samples: [sample.score for sample in samples],
        ),
        SampleColumn(
            name="tokens",
            kind="whole",
            unit="tokens",
            meaning="length of the reply, reasoning included",
            fields=("num_generated_tokens",),
            values=_take_field("num_generated_tokens", int),
        ),
        SampleColumn(
            name="reasoning_tokens",
            kind="whole",
            unit="tokens",
            meaning="length of the reasoning",
            fields=("num_reasoning_tokens",),
            values=_take_field("num_reasoning_tokens", int),
        ),
        SampleColumn(
            name="input_tokens",
            kind="whole",
            unit="tokens",
            meaning="length of the prompt",
            fields=("num_input_tokens",),
            values=_take_field("num_input_tokens", int),
        ),
        SampleColumn(
            name="seconds",
            kind="number",
            unit="s",
            meaning="time from request to reply",
            fields=("generation_time", "generation_start_time", "generation_end_time"),
            values=_sample_durations,
        ),
        SampleColumn(
            name="finish_reason",
            kind="word",
            meaning="why the reply ended: stop, length, …",
            fields=("finish_reason",),
            values=_take_field("finish_reason", str),
        ),
        SampleColumn(
            name="grader",
            kind="word",
            meaning="grader and its version",
            fields=("grader",),
            values=_take_field("grader", str),
        ),
        SampleColumn(
            name="why",
            kind="text",
            meaning="the grader's reason",
            fields=("why",),
            values=_take_field("why", str),
        ),
        SampleColumn(
            name="expected",
            kind="text",
            meaning="expected answer",
            fields=GOLD_FIELDS,
            values=_read_each(_gold_text),
        ),
        SampleColumn(
            name="extracted",
            kind="text",
            meaning="answer that was extracted from the reply",
            fields=("predicted_answer",),
            values=_take_field("predicted_answer", str),
        ),
        SampleColumn(
            name="error",
            kind="text",
            meaning="error of a request, tool or grader",
            fields=("detailed_error", "error"),
            values=_read_each(_first_text("detailed_error", "error")),
            long=True,
        ),
        SampleColumn(
            name="question",
            kind="text",
            meaning="what was asked, without the prompt around it",
            fields=(*QUESTION_FIELDS, *_CONVERSATIONS),
            values=_read_each(lambda row: question_of(row) or None),
            long=True,
        ),
        SampleColumn(
            name="reply",
            kind="text",
            meaning="the model's reply, without reasoning that the server sent apart",
            fields=("generation",),
            values=_take_field("generation", str),
            long=True,
        ),
        SampleColumn(
            name="reasoning",
            kind="text",
            meaning="reasoning, where the server or the run told it apart",
            fields=("reasoning_content", "_full_generation"),
            values=_read_each(_first_text("reasoning_content", "_full_generation")),
            long=True,
        ),
    )
}
