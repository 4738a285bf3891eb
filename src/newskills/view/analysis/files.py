# SPDX-License-Identifier: Apache-2.0
"""Tables of results as files: Parquet, CSV, or one database of DuckDB."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from newskills.base.errors import storage_error
from newskills.view.analysis.arrow import batches_of, import_duckdb, import_pyarrow
from newskills.view.analysis.database import RESULT_TABLES, write_database
from newskills.view.analysis.folders import FolderPath, find_results
from newskills.view.analysis.shown import as_csv

TableFormat = Literal["parquet", "csv", "duckdb"]
DATABASE_FILE = "results.duckdb"
_ROW_GROUP = 32_768
"""Rows that are held until they are written: their texts may be long."""


def file_names(form: TableFormat) -> list[str]:
    """Return the names of the files that an export writes."""
    if form == "duckdb":
        return [DATABASE_FILE]
    return [f"{name}.{form}" for name in RESULT_TABLES]


def write_tables(
    paths: FolderPath | Sequence[FolderPath],
    form: TableFormat,
    folder: Path,
    notes: list[str],
    *,
    runs_without: Collection[str] = (),
) -> list[Path]:
    """Write the tables of the results below `paths` into `folder`; `notes` gets what was left out.

    All columns are written, except those of the table `runs` that `runs_without` names.

    A file appears when it is whole. Raises ConfigError (a package is missing), DataError (no results), StorageError.
    """
    if form == "duckdb":
        import_duckdb()
    else:
        import_pyarrow()
    results = find_results(paths)
    notes += results.notes
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(error, folder) from error
    if form == "duckdb":
        columns = {name: table.columns for name, table in RESULT_TABLES.items()}
        return [_write_whole(folder / DATABASE_FILE, lambda path: write_database(path, results, columns, notes))]
    write = _write_parquet if form == "parquet" else _write_csv
    written = []
    for name, table in RESULT_TABLES.items():
        reader = table.read(results, table.columns, notes)
        if name == "runs" and runs_without:
            reader = reader.drop_columns(list(runs_without))
        written.append(_write_whole(folder / f"{name}.{form}", partial(write, reader)))
    return written


def _write_whole(path: Path, write: Callable[[Path], None]) -> Path:
    """Write beside the place, and move it there. Raises StorageError."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(beside)
        os.replace(beside, path)
    except OSError as error:
        raise storage_error(error, path) from error
    finally:
        beside.unlink(missing_ok=True)
    return path


def _write_parquet(reader: Any, path: Path) -> None:
    from pyarrow import parquet

    with parquet.ParquetWriter(path, reader.schema, compression="zstd") as writer:
        for batch in batches_of(reader):
            writer.write_batch(batch, row_group_size=_ROW_GROUP)


def _write_csv(reader: Any, path: Path) -> None:
    with path.open("wb") as file:
        for line in as_csv(reader):
            file.write(line)
