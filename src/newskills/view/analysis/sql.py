# SPDX-License-Identifier: Apache-2.0
"""SQL over the tables of results.

The query runs in a process of its own (`query_process`), which is ended when its time is up, so that neither an endless
query nor one that takes all memory harms this one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError, UserError, suggest
from newskills.view.analysis.arrow import import_duckdb, import_pyarrow
from newskills.view.analysis.columns_of_query import needed_columns
from newskills.view.analysis.database import RESULT_TABLES, write_database
from newskills.view.analysis.folders import FolderPath, find_results
from newskills.view.analysis.query_process import DATABASE, SPILL, QueryFault, QueryOrder

if TYPE_CHECKING:
    import pyarrow

_TABLE = re.compile(r"Table with name (\S+) does not exist")
_COLUMN = re.compile(
    r'(?:Referenced column|[Cc]olumn) "([^"]+)"(?: was)? not found|does not have a column named "([^"]+)"'
)
_CHILD_PROGRAM = """
import sys
from pathlib import Path

sys.path[:] = sys.argv[2:]
from newskills.view.analysis.query_process import main

sys.exit(main(Path(sys.argv[1])))
"""
_DESCRIBES = re.compile(r"\s*(?:describe|desc|show)\b", re.IGNORECASE)
"""A query about the tables themselves, for which no record is read."""
MAX_SQL_CHARS = 100_000
"""Characters of a query."""
_GRACE_SECONDS = 5.0


class QueryOptions(Struct, frozen=True, kw_only=True):
    """Limits of a query.

    time_limit     seconds that it may take, once the tables are read
    memory_limit   megabytes that it may hold; sorts and joins beyond it use the disk
    most           rows that are wanted; None: all
    """

    time_limit: float = 60.0
    memory_limit: int = 2_000
    most: int | None = None


def query(
    sql: str,
    paths: FolderPath | Sequence[FolderPath],
    *,
    time_limit: float = 60.0,
    memory_limit: int = 2_000,
) -> pyarrow.Table:
    """Return the rows of one SELECT over the tables runs, scores, samples and messages of the results below `paths`.

    time_limit     seconds that the query may take, once the tables are read
    memory_limit   megabytes that it may hold; sorts and joins beyond it use the disk

    Raises ConfigError (a package is missing), DataError (no results; a query that is wrong, writes, reads other files,
    or exceeds its time or memory).
    """
    options = QueryOptions(time_limit=time_limit, memory_limit=memory_limit)
    with query_reader(sql, paths, options, []) as reader:
        return reader.read_all()


@contextmanager
def query_reader(
    sql: str, paths: FolderPath | Sequence[FolderPath], options: QueryOptions, notes: list[str]
) -> Iterator[pyarrow.RecordBatchReader]:
    """Open the rows of a query, to be read once; `notes` gets what was left out of the tables. Raises as `query`."""
    duckdb = import_duckdb()
    pa = import_pyarrow()
    check_statement(duckdb, sql)
    results = find_results(paths)
    notes += results.notes
    with tempfile.TemporaryDirectory(prefix="newskills-query-") as name:
        folder = Path(name)
        (folder / SPILL).mkdir()
        parsing = duckdb.connect(":memory:")
        try:
            columns = needed_columns(parsing, sql)
        finally:
            parsing.close()
        write_database(folder / DATABASE, results, columns, notes, is_empty=bool(_DESCRIBES.match(sql)))
        with _Query(folder, sql, options) as running:
            yield running.reader(pa)
            running.finish()


def check_statement(duckdb: Any, sql: str) -> None:
    """Raise DataError for what is not one SELECT."""
    if len(sql) > MAX_SQL_CHARS:
        raise DataError(f"A query may have {MAX_SQL_CHARS:,} characters; this one has {len(sql):,}.")
    if not sql.isascii() and sql != sql.encode("utf-8", "replace").decode():
        raise DataError("The query has a character that UTF-8 cannot hold.")
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise _query_error(QueryFault(kind=type(error).__name__, message=str(error)), sql) from error
    if len(statements) != 1:
        raise DataError(f"A query is one statement; this one has {len(statements)}.")
    kind = statements[0].type.name
    if kind not in ("SELECT", "EXPLAIN"):
        raise DataError(
            f"A query only reads: it begins with SELECT, FROM, WITH or DESCRIBE, and this is {_statement_kind(sql)}."
        )


def _statement_kind(sql: str) -> str:
    """Return the first word of a statement, in capitals."""
    words = re.sub(r"--[^\n]*|/\*.*?\*/", " ", sql, flags=re.DOTALL).split()
    if words:
        return words[0].upper()[:20]
    return "empty"


class _Query:
    """The process of a query, its limit of time, and what it said."""

    def __init__(self, folder: Path, sql: str, options: QueryOptions) -> None:
        self.sql, self.options = sql, options
        threads = len(os.sched_getaffinity(0))
        order = QueryOrder(sql=sql, memory=options.memory_limit, threads=threads, most=options.most)
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed at exit
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _CHILD_PROGRAM, str(folder), *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            cwd=folder,
            env={"PATH": os.environ.get("PATH", ""), "TZ": "UTC"},
        )
        self.is_late = False
        self.timer = threading.Timer(options.time_limit, self._end)
        self.timer.start()
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(msgspec.json.encode(order))
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended, and says why

    def __enter__(self) -> _Query:
        return self

    def __exit__(self, *_: object) -> None:
        self.timer.cancel()
        self.process.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process.wait()
        self.errors.close()

    def _end(self) -> None:
        self.is_late = True
        self.process.kill()

    def reader(self, pa: Any) -> pyarrow.RecordBatchReader:
        """Return the rows, which raise DataError where the query fails at its start or later."""
        stdout: IO[bytes] | None = self.process.stdout
        try:
            stream = pa.ipc.open_stream(stdout)
        except pa.ArrowException:
            raise self._error() from None

        def batches() -> Iterator[Any]:
            try:
                yield from stream
            except (pa.ArrowException, OSError):
                raise self._error() from None

        return pa.RecordBatchReader.from_batches(stream.schema, batches())

    def finish(self) -> None:
        """Raise DataError where the query failed behind its last row."""
        assert self.process.stdout is not None
        if not self.process.stdout.read(1) and self.process.wait() != 0:
            raise self._error()

    def _error(self) -> UserError:
        code = self.process.wait(_GRACE_SECONDS)
        if self.is_late:
            return DataError(
                f"The query took more than {self.options.time_limit:g} seconds and was stopped.",
                hint="Give it more: --time_limit SECONDS",
            )
        self.errors.seek(0)
        lines = self.errors.read().splitlines() or [b""]
        try:
            fault = msgspec.json.decode(lines[-1], type=QueryFault)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return DataError(f"The query's process ended with code {code}; it may need more memory than there is.")
        return _query_error(fault, self.sql, self.options.memory_limit)


def _query_error(fault: QueryFault, sql: str, memory: int = 0) -> UserError:
    """Return the error in one sentence, with names that were perhaps meant."""
    first = " ".join(fault.message.partition("\n\nLINE ")[0].split("\n")[0].split())
    if match := _TABLE.search(first):
        return DataError(f"There is no table '{match[1]}'{suggest(match[1], RESULT_TABLES)}")
    if match := _COLUMN.search(first):
        name = (match[1] or match[2]).rpartition(".")[2]
        words = {word.casefold() for word in re.findall(r"\w+", sql)}
        tables = [table for key, table in RESULT_TABLES.items() if key in words] or RESULT_TABLES.values()
        names = [column.name for table in tables for column in table.columns]
        return DataError(f"There is no column '{name}'{suggest(name, names)}")
    if "OutOfMemory" in fault.kind or fault.kind in ("MemoryError", "ArrowMemoryError") or "bad_alloc" in first:
        return DataError(
            f"The query needs more than {memory:,} MB of memory.", hint="Give it more: --memory_limit MEGABYTES"
        )
    if fault.kind == "PermissionException" or "disabled by configuration" in first:
        return DataError("A query reads the tables runs, scores, samples and messages, and no file or address.")
    if fault.kind in ("ConfigError", "ModuleNotFoundError"):
        return ConfigError(first)
    if " Error: " in first[:40]:
        first = first.partition(": ")[2]
    return DataError(f"The query is wrong: {first.rstrip('.')}.")
