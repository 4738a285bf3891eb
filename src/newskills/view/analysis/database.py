# SPDX-License-Identifier: Apache-2.0
"""Tables of results in a file of DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from newskills.view.analysis.arrow import SCHEMA_VERSION, import_duckdb, schema_of
from newskills.view.analysis.folders import ResultFolders
from newskills.view.analysis.messages import MESSAGE_COLUMNS, messages_in
from newskills.view.analysis.runs import RUN_COLUMNS, runs_in
from newskills.view.analysis.samples import samples_in
from newskills.view.analysis.scores import SCORE_COLUMNS, scores_in
from newskills.view.filters.columns import SAMPLE_COLUMNS, Column


class ResultTable(NamedTuple):
    """A table by its columns. `read`: results, columns, notes → an Arrow table, or a reader of batches."""

    columns: tuple[Column, ...]
    read: Callable[[ResultFolders, Sequence[Column], list[str]], Any]
    meaning: str


def _read_samples(results: ResultFolders, columns: Sequence[Column], notes: list[str]) -> Any:
    return samples_in(results, [SAMPLE_COLUMNS[column.name] for column in columns], None, notes)


RESULT_TABLES: Mapping[str, ResultTable] = {
    "runs": ResultTable(
        RUN_COLUMNS, lambda results, columns, notes: runs_in(results), "one row for each benchmark of a run"
    ),
    "scores": ResultTable(
        SCORE_COLUMNS,
        lambda results, columns, notes: scores_in(results),
        "one row for each benchmark of a run, subset, mode and score",
    ),
    "samples": ResultTable(tuple(SAMPLE_COLUMNS.values()), _read_samples, "one row for each sample"),
    "messages": ResultTable(
        MESSAGE_COLUMNS,
        lambda results, columns, notes: messages_in(results, notes),
        "one row for each message of a sample's conversation",
    ),
}
"""Name → what it holds; of samples all columns, those with long texts too."""


def write_database(
    path: Path,
    results: ResultFolders,
    columns: Mapping[str, Sequence[Column]],
    notes: list[str],
    *,
    is_empty: bool = False,
) -> None:
    """Write a new file with these tables and columns, which are documented in it; `is_empty`: without rows. Raises
    ConfigError where duckdb is missing."""
    connection = import_duckdb().connect(str(path))
    try:
        for name, chosen in columns.items():
            if is_empty:
                incoming = schema_of(chosen).empty_table()
            else:
                incoming = RESULT_TABLES[name].read(results, chosen, notes)
            connection.register("incoming", incoming)
            names = ", ".join(f'"{column.name}"' for column in chosen)
            connection.execute(f"CREATE TABLE {name} AS SELECT {names} FROM incoming")  # noqa: S608 - names are ours
            connection.unregister("incoming")
            _comment_columns(connection, name, chosen)
    finally:
        connection.close()


def _comment_columns(connection: Any, name: str, columns: Sequence[Column]) -> None:
    meaning = f"{RESULT_TABLES[name].meaning}; schema {SCHEMA_VERSION} of newskills.analysis"
    connection.execute(f"COMMENT ON TABLE {name} IS {_sql_literal(meaning)}")
    for column in columns:
        text = column.meaning
        if column.unit:
            text += f" ({column.unit})"
        connection.execute(f'COMMENT ON COLUMN {name}."{column.name}" IS {_sql_literal(text)}')


def _sql_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
