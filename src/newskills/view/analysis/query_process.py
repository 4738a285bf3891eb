# SPDX-License-Identifier: Apache-2.0
"""The process that runs a query: it has one read-only database, no other file, and a limit of memory.

`python -c … FOLDER`: reads a `QueryOrder` (JSON) from standard input, writes the rows as an Arrow stream to standard
output, and where the query fails a `QueryFault` as the last line of standard error.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

DATABASE, SPILL = "results.duckdb", "spill"
_ROWS = 1_000
_SLACK = 3 << 30
"""Bytes of address space beyond the limit: libraries, threads, buffers that DuckDB does not count."""


class QueryOrder(Struct, kw_only=True):
    """`memory` in megabytes; `threads` of DuckDB; `most`: rows that are wanted, None for all."""

    sql: str
    memory: int
    threads: int
    most: int | None = None


class QueryFault(Struct, kw_only=True):
    """`kind`: the class of the error in DuckDB."""

    kind: str
    message: str


def locked_connection(folder: Path, order: QueryOrder) -> Any:
    """Open the database so that a query reads it and nothing else."""
    import duckdb

    config = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "allow_persistent_secrets": "false",
        "python_enable_replacements": "false",
        "secret_directory": str(folder / SPILL),
        "extension_directory": str(folder / SPILL),
        "home_directory": str(folder / SPILL),
        "temp_directory": str(folder / SPILL),
        "max_temp_directory_size": "16GB",
        "memory_limit": f"{order.memory}MB",
        "threads": str(order.threads),
    }
    connection = duckdb.connect(str(folder / DATABASE), read_only=True, config=config)
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")
    return connection


def main(folder: Path) -> int:
    """Run the query that standard input holds; return the exit code."""
    import pyarrow

    order = msgspec.json.decode(sys.stdin.buffer.read(), type=QueryOrder)
    most = (order.memory << 20) + _SLACK
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    try:
        connection = locked_connection(folder, order)
        sql = order.sql.strip().removesuffix(";")
        reader = connection.execute(sql).to_arrow_reader(_ROWS)
        left = sys.maxsize if order.most is None else order.most
        with pyarrow.ipc.new_stream(sys.stdout.buffer, reader.schema) as stream:
            for batch in reader:
                stream.write_batch(batch.slice(0, left))
                left -= batch.num_rows
                if left <= 0:
                    break
    except BrokenPipeError:
        return 1
    except Exception as error:  # noqa: BLE001 - errors of DuckDB, Arrow and memory go to the parent, whatever their class
        fault = QueryFault(kind=type(error).__name__, message=str(error))
        sys.stderr.buffer.write(b"\n" + msgspec.json.encode(fault) + b"\n")
        return 1
    return 0
