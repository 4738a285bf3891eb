# SPDX-License-Identifier: Apache-2.0
"""BIRD (arXiv:2305.03111): the rows of two queries, compared as the authors' script compares them.

Ours runs queries in the sandbox, which tests/graders/code covers; here both read the same database.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from newskills.base.records import Row
from newskills.graders.code.sql import BirdGrader
from tests.agreement.compare import OUTPUTS, Comparison, Verdict
from tests.agreement.originals import loaded

_SCHEMA = """
CREATE TABLE well (id INTEGER, place TEXT, depth REAL, dug INTEGER, owner TEXT);
INSERT INTO well VALUES (1, 'Olm', 12.5, 1874, 'Ann'), (2, 'Ulm', 8, 1901, NULL), (3, 'Olm', 30.25, 1874, 'Ben'),
  (4, 'Rest', 8.0, NULL, 'Ann'), (5, 'Żuk', 15, 1999, 'Çem'), (6, 'Ulm', 8, 1901, 'Ann');
CREATE TABLE rain (place TEXT, year INTEGER, mm REAL);
INSERT INTO rain VALUES ('Olm', 2019, 712), ('Olm', 2020, 655.5), ('Ulm', 2019, 540), ('Rest', 2020, NULL);
"""
_GOLDS = (
    "SELECT place FROM well WHERE depth > 10",
    "SELECT place, depth FROM well WHERE owner = 'Ann'",
    "SELECT COUNT(*) FROM well WHERE place = 'Olm'",
    "SELECT AVG(depth) FROM well",
    "SELECT owner FROM well",
    "SELECT DISTINCT place FROM well ORDER BY place",
    "SELECT w.place, r.mm FROM well w JOIN rain r ON w.place = r.place WHERE r.year = 2019",
    "SELECT place FROM well ORDER BY depth DESC LIMIT 1",
    "SELECT dug FROM well WHERE dug IS NOT NULL",
    "SELECT mm FROM rain",
    "SELECT place, COUNT(*) FROM well GROUP BY place",
    "SELECT id FROM well WHERE depth > 1000",
)


def rows() -> Iterator[Row]:
    for gold in _GOLDS:
        yield {"gt_sql": gold}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["gt_sql"]
    columns = gold.partition("SELECT ")[2].partition(" FROM")[0]
    own = f"SELECT * FROM ({gold})"
    first = columns.split(", ")[0].split(".")[-1].removeprefix("DISTINCT ")
    return {
        "the same": gold,
        "small letters": gold.replace("SELECT", "select").replace("FROM", "from"),
        "semicolon": f"{gold};",
        "comment": f"-- rows\n{gold}",
        "in brackets": own,
        "other order": f"{own} ORDER BY 1 DESC",
        "one row": f"{own} LIMIT 1",
        "no row": f"{own} LIMIT 0",
        "twice": f"{own} UNION ALL {own}",
        "each once": f"SELECT DISTINCT * FROM ({gold})",
        "as text": f"SELECT CAST({first} AS TEXT) FROM ({gold})",
        "a column more": gold.replace("SELECT ", "SELECT 1, ", 1).replace("1, DISTINCT", "DISTINCT 1,"),
        "columns reversed": gold.replace(columns, ", ".join(reversed(columns.split(", "))), 1),
        "plus nothing": f"SELECT *, NULL FROM ({gold})",
        "rounded": f"SELECT ROUND(1.0, 2), * FROM ({gold})",
        "syntax error": gold.replace("FROM", "FORM", 1),
        "no such table": gold.replace("FROM well", "FROM wells").replace("FROM rain", "FROM rains"),
        **{f"query {number}": other for number, other in enumerate(_GOLDS, 1) if other != gold},
    }


@cache
def database() -> str:
    """Path of a small database, which lasts as long as this process."""
    path = Path(tempfile.mkdtemp()) / "wells.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(_SCHEMA)
    return str(path)


def original(folder: Path) -> Verdict:
    """Needs func_timeout. A query that fails is wrong, as in `execute_model`."""
    script = loaded(folder / "bird" / "llm" / "src" / "evaluation.py")

    def verdict(row: Row, reply: Any) -> float:
        return float(script.execute_model(reply, row["gt_sql"], database(), 0, 30)["res"])

    return verdict


def ours(row: Row, reply: Any) -> float:
    with sqlite3.connect(database()) as connection:
        try:
            answered, wanted = (_sent(connection.execute(query).fetchall()) for query in (reply, row["gt_sql"]))
        except sqlite3.Error:
            return 0.0
    return float(BirdGrader()._are_same_rows(answered, wanted, row["gt_sql"]))


def _sent(rows_read: list[Any]) -> list[list[Any]]:
    """As rows leave the sandbox."""
    return msgspec.json.decode(msgspec.json.encode(rows_read), type=list[list[Any]])


COMPARISON = Comparison(
    name="bird",
    benchmarks=("birdbench",),
    scorer="BIRD `evaluation.py`, comparison of rows",
    compared=OUTPUTS,
    repository="AlibabaResearch/DAMO-ConvAI",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
)
