# SPDX-License-Identifier: Apache-2.0
"""Queries judged by what they find in a real database, which none of them can change."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.graders.code.running_any import fenced, graded

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.benchmarks.code.text_to_sql import schema_statements
from newskills.graders import make_grader

GOLD = "SELECT name, age FROM keeper WHERE age > 30"
ANSWERS = {
    "right": (fenced("SELECT name, age FROM keeper WHERE age >= 31 -- old", "sql"), "correct", "correct"),
    "repeated": (fenced(f"{GOLD} UNION ALL SELECT 'Bo', 40", "sql"), "correct", "wrong"),
    "reversed": (fenced("SELECT name, age FROM keeper WHERE age > 30 ORDER BY 1 DESC", "sql"), "correct", "correct"),
    "other columns": (fenced("SELECT age, name FROM keeper WHERE age > 30", "sql"), "wrong", "wrong"),
    "fewer": (fenced("SELECT name, age FROM keeper WHERE age > 35", "sql"), "wrong", "wrong"),
    "the text of the rows": (fenced("SELECT 'Bo', '40' UNION SELECT 'Cy', '35'", "sql"), "wrong", "wrong"),
    "no such table": (fenced("SELECT * FROM gardener", "sql"), "wrong", "wrong"),
    "writes": (fenced(f"DELETE FROM keeper; {GOLD}", "sql"), "wrong", "wrong"),
    "endless": (fenced("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n", "sql"),
                "wrong", "wrong"),
    "no query": (fenced("-- 1", "python") + fenced("1;", "sql"), "no_answer", "no_answer"),
    "nothing": ("", "no_answer", "no_answer"),
    "cut off": ("```sql\nSELECT name", "no_answer", "no_answer"),
}  # fmt: skip


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("databases")
    (folder / "zoo").mkdir()
    connection = sqlite3.connect(folder / "zoo" / "zoo.sqlite")
    connection.execute("CREATE TABLE keeper (name TEXT, age INTEGER, photo BLOB)")
    connection.executemany("INSERT INTO keeper VALUES (?, ?, x'00ff')", [("Al", 20), ("Bo", 40), ("Cy", 35)])
    connection.commit()
    connection.close()
    for path in (folder / "zoo" / "zoo.sqlite", folder / "zoo", folder):
        path.chmod(0o755)
    return folder


def row(generation: str, gold: str = GOLD, db: str = "zoo") -> Row:
    return {"generation": generation, "gt_sql": gold, "db_id": db}


@pytest.mark.parametrize(("comparison", "column"), [("set", 1), ("rows", 2)])
def test_answers(databases: Path, comparison: str, column: int) -> None:
    rows = [row(answer[0]) for answer in ANSWERS.values()]
    scores = graded("bird", rows, databases, comparison=comparison, timeout=2.0)
    found = dict(zip(ANSWERS, scores, strict=True))
    assert {name: score.outcome for name, score in found.items()} == {
        name: str(answer[column]) for name, answer in ANSWERS.items()
    }
    assert {score.fields["res"] for score in scores} == {0, 1}
    assert found["endless"].why == "timeout"
    assert found["no such table"].why == "OperationalError: no such table: gardener"


def test_order_counts_where_the_reference_orders(databases: Path) -> None:
    gold = f"{GOLD} ORDER BY age"
    rows = [row(fenced(f"{GOLD} ORDER BY age {how}", "sql"), gold) for how in ("ASC", "DESC")]
    assert [score.outcome for score in graded("bird", rows, databases, comparison="rows")] == ["correct", "wrong"]


def test_other_places_of_the_query_and_blobs(databases: Path) -> None:
    query = "SELECT photo FROM keeper"
    (boxed,) = graded("bird", [row(f"So: \\boxed{{{query}}}", query)], databases, answer_format="BOXED")
    (found,) = graded(
        "bird", [row(f"SQL: {query}", query)], databases, answer_format="USE_REGEX", extraction_regex="SQL: (.+)"
    )
    assert (boxed.outcome, found.outcome) == ("correct", "correct")
    with pytest.raises(ConfigError, match="not a regular expression"):
        make_grader("bird", {"extraction_regex": "("})


def test_databases_that_are_not_there_fail_nobody(databases: Path) -> None:
    answer = fenced(GOLD, "sql")
    (without,) = graded("bird", [row(answer)])
    absent, broken = graded("bird", [row(answer, db="farm"), row(answer, gold="SELECT * FROM nothing")], databases)
    assert [score.outcome for score in (without, absent, broken)] == ["unscored"] * 3
    assert "data_dir" in without.why
    assert broken.cause == "data"


def test_schemas_are_what_sqlite_understands() -> None:
    text = schema_statements(
        {
            "table_names_original": ["keeper", "animal"],
            "column_names_original": [[-1, "*"], [0, "id"], [0, "first name"], [1, "id"], [1, "keeper"]],
            "column_types": ["text", "number", "text", "number", "number"],
            "foreign_keys": [[4, 1]],
            "primary_keys": [1, [3, 4]],
        }
    )
    connection = sqlite3.connect(":memory:")
    connection.executescript(text)
    names = [name for _, name, *_ in connection.execute("PRAGMA table_info(keeper)")]
    connection.close()
    assert names == ["id", "first name"]
    assert "REFERENCES keeper(id)" in text
    assert "PRIMARY KEY (id, keeper)" in text
