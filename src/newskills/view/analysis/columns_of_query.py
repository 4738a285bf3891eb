# SPDX-License-Identifier: Apache-2.0
"""Which tables and columns a query may need, so that long texts are read only where they are.

A column is left out only where the query's syntax tree, in whose texts its name does not occur, has nothing that stands
for columns without naming them (`*`, `#1`, a whole row, a pivot). What is left out is absent, never empty: a query that
needs it all the same fails instead of computing with nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from newskills.view.analysis.database import RESULT_TABLES
from newskills.view.filters.columns import Column

_UNNAMED = {"STAR", "POSITIONAL_REFERENCE", "SHOW_REF", "PIVOT", "NATURAL"}
"""Classes and types of nodes of the tree that may stand for any column."""
_BY_NAME = {"query", "query_table"}
"""Functions that take the name of a table as a text."""


def needed_columns(connection: Any, sql: str) -> dict[str, Sequence[Column]]:
    """Return table → columns that are needed for a query. `connection` parses it."""
    every: dict[str, Sequence[Column]] = {name: table.columns for name, table in RESULT_TABLES.items()}
    (text,) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
    tree = msgspec.json.decode(text)
    if tree.get("error") is not False:
        return every
    nodes = list(_query_nodes(tree))
    words = {word.casefold() for node in nodes for word in _node_texts(node)}
    named_tables = {name: table for name, table in RESULT_TABLES.items() if name in words}
    if words & _BY_NAME or not named_tables:
        return every
    if any(map(_stands_for_columns, nodes)) or _whole_rows(nodes):
        return {name: table.columns for name, table in named_tables.items()}
    return {name: _named_columns(table.columns, words) for name, table in named_tables.items()}


def _stands_for_columns(node: Mapping[str, Any]) -> bool:
    kinds = {str(node.get(name)) for name in ("class", "type", "ref_type")}
    return bool(kinds & _UNNAMED or node.get("column_name_alias"))


def _whole_rows(nodes: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a name stands for a whole row: a table, an alias, or a name that is no column."""
    columns = {column.name for table in RESULT_TABLES.values() for column in table.columns}
    references = [node["column_names"] for node in nodes if node.get("class") == "COLUMN_REF"]
    return any(not names or str(names[-1]).casefold() not in columns for names in references)


def _named_columns(columns: Sequence[Column], words: set[str]) -> Sequence[Column]:
    """Return the columns that are named; the first where none is, since a table has one at least."""
    return [column for column in columns if column.name in words] or columns[:1]


def _query_nodes(value: Any) -> Iterator[Mapping[str, Any]]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def _node_texts(node: Mapping[str, Any]) -> Iterator[str]:
    for value in node.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, str))
