# SPDX-License-Identifier: Apache-2.0
"""The table `messages`: one row for each message of a sample's conversation, as far as the record holds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from newskills.view.analysis.arrow import batch_of, import_pyarrow, schema_of
from newskills.view.analysis.folders import FolderPath, ResultFolders, find_results
from newskills.view.analysis.reading import LONG_BATCH, SampleReading, read_batches
from newskills.view.filters.columns import SAMPLE_COLUMNS, Column, SampleFacts, text_or_none
from newskills.view.filters.matching import fields_of_filter, filter_predicate, sample_filter
from newskills.view.records import turns_of

if TYPE_CHECKING:
    import pyarrow

MESSAGE_COLUMNS = (
    Column(name="run", kind="word", meaning="folder of the run, below the folder that was named"),
    Column(name="benchmark", kind="word", meaning="benchmark, as `group.member` where it belongs to a group"),
    Column(name="seed", kind="whole", meaning="seed of the output file; null: the run has no seeds"),
    Column(name="id", kind="text", meaning="id of the problem, as in samples"),
    Column(name="outcome", kind="word", meaning="outcome of the sample"),
    Column(name="turn", kind="whole", meaning="place in the conversation, from 0"),
    Column(name="role", kind="word", meaning="system, user, assistant, tool, …"),
    Column(name="content", kind="text", meaning="text; parts of other kinds as JSON"),
    Column(name="tool_calls", kind="text", meaning="calls that the message makes, as JSON"),
    Column(name="recorded", kind="flag", meaning="false: made of the question and the reply, without the prompt"),
)
_FIELDS = frozenset(
    {*SAMPLE_COLUMNS["question"].fields, *SAMPLE_COLUMNS["reply"].fields, "_prompt", "rendered_prompt"}
)


def messages(paths: FolderPath | Sequence[FolderPath], where: str | None = None) -> pyarrow.Table:
    """Return the messages of all samples below `paths`; `where` chooses samples.

    Raises ConfigError (pyarrow is missing, the filter), DataError (no results), UnknownNameError (a column).
    """
    results = find_results(paths)
    notes = list(results.notes)
    return messages_in(results, notes, where).read_all()


def messages_in(results: ResultFolders, notes: list[str], where: str | None = None) -> pyarrow.RecordBatchReader:
    """Return a reader of the messages, a few hundred samples at a time. Raises ConfigError, UnknownNameError."""
    pa = import_pyarrow()
    fields, fits = set(_FIELDS), None
    if where is not None:
        columns_of_filter = results.filter_columns()
        tree = sample_filter(where, columns_of_filter)
        fields |= fields_of_filter(tree, columns_of_filter)
        fits = filter_predicate(tree, columns_of_filter)
    schema = schema_of(MESSAGE_COLUMNS)
    reading = SampleReading(frozenset(fields), fits, LONG_BATCH)

    def batches() -> Iterator[Any]:
        for samples in read_batches(results, reading, notes):
            rows = [row for sample in samples for row in _message_rows(sample)]
            yield batch_of(schema, MESSAGE_COLUMNS, [list(column) for column in zip(*rows, strict=True)])

    return pa.RecordBatchReader.from_batches(schema, batches())


def _message_rows(sample: SampleFacts) -> Iterator[tuple[Any, ...]]:
    turns, is_recorded = turns_of(sample.row)
    identity = text_or_none(sample.row.get("id"))
    for number, turn in enumerate(turns):
        yield (
            sample.run,
            sample.benchmark,
            sample.seed,
            identity,
            sample.outcome,
            number,
            text_or_none(turn.get("role") or turn.get("type")),
            text_or_none(turn.get("content")),
            text_or_none(turn.get("tool_calls")),
            is_recorded,
        )
