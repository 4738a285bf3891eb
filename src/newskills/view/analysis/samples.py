# SPDX-License-Identifier: Apache-2.0
"""The table `samples`: one row for each sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from newskills.base.errors import UnknownNameError
from newskills.view.analysis.arrow import batch_of, import_pyarrow, schema_of
from newskills.view.analysis.folders import FolderPath, ResultFolders, find_results
from newskills.view.analysis.reading import BATCH_ROWS, LONG_BATCH, SampleReading, read_batches
from newskills.view.filters.columns import SAMPLE_COLUMNS, SampleColumn
from newskills.view.filters.matching import fields_of_filter, filter_predicate, sample_filter

if TYPE_CHECKING:
    import pyarrow

SHORT_COLUMNS = tuple(name for name, column in SAMPLE_COLUMNS.items() if not column.long)
"""What a table of samples has where no columns are named: all but long texts."""


def samples(
    paths: FolderPath | Sequence[FolderPath],
    columns: Sequence[str] | None = None,
    where: str | None = None,
) -> pyarrow.Table:
    """Return the samples of all finished output files below `paths`.

    columns   names of columns (None: all but the long texts question, reply, reasoning, error)
    where     a filter, such as `outcome = wrong and tokens > 2000`; it may name any column

    What was left out stands in the table's metadata, `newskills.notes`. Raises ConfigError (pyarrow is missing, the
    filter cannot be read), DataError (no results), UnknownNameError (a column).
    """
    pa = import_pyarrow()
    notes: list[str] = []
    reader = sample_batches(paths, columns, where, notes=notes)
    batches = list(reader)
    return pa.Table.from_batches(batches, reader.schema).replace_schema_metadata(
        {**reader.schema.metadata, b"newskills.notes": "\n".join(notes)}
    )


def sample_batches(
    paths: FolderPath | Sequence[FolderPath],
    columns: Sequence[str] | None = None,
    where: str | None = None,
    *,
    notes: list[str] | None = None,
) -> pyarrow.RecordBatchReader:
    """Return the rows of `samples` as a reader, which holds a few thousand of them at a time.

    `notes` gets what was left out, while the reader is read. Raises as `samples`.
    """
    results = find_results(paths)
    if notes is None:
        notes = []
    notes += results.notes
    return samples_in(results, chosen_columns(columns), where, notes)


def chosen_columns(names: Sequence[str] | None) -> list[SampleColumn]:
    """Return the columns of these names. Raises UnknownNameError."""
    if names is None:
        names = SHORT_COLUMNS
    for name in names:
        if name not in SAMPLE_COLUMNS:
            raise UnknownNameError("column of samples", name, SAMPLE_COLUMNS)
    return [SAMPLE_COLUMNS[name] for name in dict.fromkeys(names)]


def samples_in(
    results: ResultFolders, columns: Sequence[SampleColumn], where: str | None, notes: list[str]
) -> pyarrow.RecordBatchReader:
    """Return a reader of the samples in these results. Raises ConfigError, UnknownNameError for the filter."""
    pa = import_pyarrow()
    fields = {field for column in columns for field in column.fields}
    fits = None
    if where is not None:
        columns_of_filter = results.filter_columns()
        tree = sample_filter(where, columns_of_filter)
        fields |= fields_of_filter(tree, columns_of_filter)
        fits = filter_predicate(tree, columns_of_filter)
    schema = schema_of(columns)
    is_long = any(column.long for column in columns)
    batch_rows = LONG_BATCH if is_long else BATCH_ROWS
    reading = SampleReading(frozenset(fields), fits, batch_rows)

    def batches() -> Iterator[Any]:
        for facts in read_batches(results, reading, notes):
            yield batch_of(schema, columns, [column.values(facts) for column in columns])

    return pa.RecordBatchReader.from_batches(schema, batches())
