# SPDX-License-Identifier: Apache-2.0
"""What `ns query "SELECT …" DIR` does: SQL over results."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.config.command_line import Parsed
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import doc

if TYPE_CHECKING:
    from newskills.view.analysis.sql import QueryOptions


class QueryCommandOptions(Struct, frozen=True, kw_only=True):
    sql: Annotated[
        str,
        doc(
            "one SELECT over the tables runs, scores, samples and messages, as one quoted word",
            {"positional": True},
        ),
    ]
    results: Annotated[list[str], doc("folders of results, at any depth", {"positional": True})]
    json: Annotated[bool, doc("print all rows as JSON lines")] = False
    csv: Annotated[bool, doc("print all rows as CSV")] = False
    latex: Annotated[bool, doc("print all rows as a table of LaTeX (booktabs)")] = False
    rows: Annotated[int, Meta(ge=1, description="how many rows the table has at most")] = 50
    time_limit: Annotated[
        float, Meta(gt=0, description="seconds that the query may take, once the results are read")
    ] = 60.0
    memory_limit: Annotated[
        int, Meta(ge=100, description="megabytes that the query may hold; beyond it sorts and joins use the disk")
    ] = 2_000


def run(parsed: Parsed[QueryCommandOptions]) -> int:
    """Print the rows of the query. Raises ConfigError for two formats at once, DataError as `query`."""
    from newskills.view.analysis.shown import as_csv, as_json_lines, as_latex, as_table
    from newskills.view.analysis.sql import query_reader

    options, notes = parsed.options, list[str]()
    formats = [f"--{name}" for name in ("json", "csv", "latex") if getattr(options, name)]
    if len(formats) > 1:
        raise ConfigError(f"{' and '.join(formats)} cannot be used together.")
    limits = _query_limits(options, None if formats else options.rows + 1)
    with query_reader(options.sql, options.results, limits, notes) as reader:
        for note in notes:
            print_note(note)
        if options.json:
            _write_lines(as_json_lines(reader))
        elif options.csv:
            _write_lines(as_csv(reader))
        elif options.latex:
            _write_lines(as_latex(reader))
        else:
            _write_lines(f"{line}\n".encode() for line in as_table(reader, options.rows))
    return 0


def query_results(parsed: Parsed[QueryCommandOptions]) -> list[dict[str, Any]]:
    """Return the rows of the query, all of them unless `rows` is given. Raises DataError as `query`."""
    from newskills.view.analysis.sql import query_reader

    options, notes = parsed.options, list[str]()
    most = options.rows if "rows" in parsed.given else None
    with query_reader(options.sql, options.results, _query_limits(options, most), notes) as reader:
        for note in notes:
            print_note(note)
        rows: list[dict[str, Any]] = reader.read_all().to_pylist()
    return rows


def _query_limits(options: QueryCommandOptions, most: int | None) -> QueryOptions:
    from newskills.view.analysis.sql import QueryOptions

    return QueryOptions(time_limit=options.time_limit, memory_limit=options.memory_limit, most=most)


def _write_lines(lines: Iterable[bytes]) -> None:
    """Write lines until whoever reads them has enough (`| head`)."""
    try:
        for line in lines:
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
