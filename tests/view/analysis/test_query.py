# SPDX-License-Identifier: Apache-2.0
"""SQL over results: it reads the tables and nothing else, ends in time, and says in one sentence what is wrong."""

from __future__ import annotations

import os
import time
from pathlib import Path

import duckdb
import pytest
from tests.view.comparison.runs import answers, record, write_run

from newskills import analysis
from newskills.base.errors import DataError, NewskillsError
from newskills.view.analysis.columns_of_query import needed_columns
from newskills.view.analysis.database import RESULT_TABLES, write_database
from newskills.view.analysis.folders import find_results
from newskills.view.analysis.query_process import DATABASE, SPILL, QueryOrder, locked_connection
from newskills.view.analysis.sql import check_statement

SECRET = "sesame-7f3a"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_run(folder / "base", {0: answers("++-?")})
    write_run(folder / "tuned", {0: answers("+++-", subset_for_metrics="algebra")})
    return folder


def rows(sql: str, folder: Path, **limits: float) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in analysis.query(sql, folder, **limits).to_pylist()]


def test_tables_can_be_joined(results: Path) -> None:
    sql = "SELECT run, count(*) FILTER (outcome = 'correct') AS n FROM samples GROUP BY run ORDER BY n"
    assert rows(sql, results) == [("base", 2), ("tuned", 3)]
    joined = """
        SELECT s.run, r.model, max(v.value) FROM samples s JOIN runs r USING (run, benchmark)
        JOIN scores v USING (run, benchmark) WHERE v.score = 'symbolic_correct' GROUP BY ALL ORDER BY ALL;
    """
    assert rows(joined, results) == [("base", "base", pytest.approx(200 / 3)), ("tuned", "tuned", 75.0)]
    assert rows("SELECT DISTINCT role FROM messages ORDER BY role", results) == [("assistant",), ("user",)]
    assert rows("SELECT 1", results) == [(1,)]


def test_all_columns_are_there_and_documented(results: Path) -> None:
    for name, table in RESULT_TABLES.items():
        described = analysis.query(f"DESCRIBE {name}", results)
        assert described.column("column_name").to_pylist() == [column.name for column in table.columns]
    assert {row[0] for row in rows("SHOW TABLES", results)} == set(RESULT_TABLES)
    comments = rows(
        "SELECT comment FROM duckdb_columns() WHERE table_name = 'samples' AND comment LIKE '%(s)'", results
    )
    assert comments == [("time from request to reply (s)",)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM samples",
        "FROM samples",
        "TABLE samples",
        "SELECT s FROM samples s",
        "SELECT samples FROM samples",
        "SELECT COLUMNS('re.*') FROM samples",
        "SELECT #20 FROM samples",
        "SELECT * FROM query('SELECT re' || 'ply FROM samples')",
        "SELECT * FROM query_table('samples')",
        "SELECT count(*) FROM samples NATURAL JOIN samples t",
        "SELECT e FROM samples AS s(a, b, c, d, e)",
        "SUMMARIZE samples",
        "UNPIVOT samples ON question, reply",
        "SELECT upper(reply), question FROM (SELECT * FROM samples)",
        "SELECT * EXCLUDE (id) FROM samples",
        "SELECT struct_pack(a := samples.*) FROM samples",
    ],
)
def test_a_query_that_may_need_any_column_gets_all(sql: str) -> None:
    connection = duckdb.connect(":memory:")
    assert [column.name for column in needed_columns(connection, sql)["samples"]] == [
        column.name for column in RESULT_TABLES["samples"].columns
    ]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT count(*) FROM samples", ["run"]),
        ("SELECT outcome, count(*) FROM samples GROUP BY ALL", ["outcome"]),
        ('SELECT "Tokens" FROM samples WHERE LENGTH(Reply) > 3', ["tokens", "reply"]),
        ("WITH t AS (SELECT id AS reply FROM samples) SELECT id FROM t", ["id", "reply"]),
        ("SELECT a.id FROM samples a JOIN samples b USING (id, seed)", ["seed", "id"]),
        ("SELECT list_transform([score], x -> x + tokens) FROM samples", None),
    ],
)
def test_other_queries_get_what_they_name(sql: str, names: list[str] | None) -> None:
    columns = [column.name for column in needed_columns(duckdb.connect(":memory:"), sql)["samples"]]
    assert columns == (names or [column.name for column in RESULT_TABLES["samples"].columns])


ATTACKS = [
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM '{file}'",
    "SELECT * FROM read_json('{file}')",
    "SELECT * FROM read_parquet('{file}')",
    "SELECT * FROM read_csv('/proc/self/environ')",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM query('FROM read_text(''{file}'')')",
    "SELECT * FROM query_table('{file}')",
    "SELECT (SELECT content FROM read_text('{file}'))",
    "EXPLAIN ANALYZE SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_parquet('http://127.0.0.1:9/x')",
    "SELECT * FROM read_csv('s3://bucket/x')",
    "SELECT getenv('NEWSKILLS_TEST_SECRET')",
    "SELECT current_setting('NEWSKILLS_TEST_SECRET')",
    "COPY samples TO '{folder}/out.csv'",
    "COPY (SELECT 1) TO '{folder}/out.parquet'",
    "EXPORT DATABASE '{folder}/out'",
    "IMPORT DATABASE '{folder}'",
    "ATTACH '{folder}/other.duckdb' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "RESET lock_configuration",
    "PRAGMA enable_profiling",
    "PRAGMA profiling_output = '{folder}/out'",
    "SELECT * FROM enable_logging()",
    "SELECT * FROM enable_profiling()",
    "CREATE TABLE x AS SELECT 1",
    "CREATE TEMP TABLE x AS SELECT 1",
    "INSERT INTO samples SELECT * FROM samples",
    "DELETE FROM samples",
    "UPDATE samples SET id = ''",
    "DROP TABLE samples",
    "CREATE SECRET (TYPE s3)",
    "CALL pragma_version()",
    "SELECT 1; COPY samples TO '{folder}/out.csv'",
    "SELECT 1; SELECT 2",
    "PREPARE x AS SELECT 1",
    "CHECKPOINT",
    "VACUUM",
    "SELECT * FROM python_scan_all_frames",
    "SELECT * FROM sql",
    "SELECT * FROM arrow_scan(1, 2, 3)",
    "SELECT * FROM pandas_scan(94000)",
    "",
    ";",
    "-- nothing",
    "SELECT",
    "\0",
    "SELECT '\ud83d'",
]


@pytest.fixture(scope="module")
def locked(results: Path, tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """The connection that a query gets, in this process."""
    folder = tmp_path_factory.mktemp("query")
    (folder / SPILL).mkdir()
    write_database(folder / DATABASE, find_results(results), {"samples": RESULT_TABLES["samples"].columns}, [])
    return locked_connection(folder, QueryOrder(sql="", memory=500, threads=1))


@pytest.mark.parametrize("sql", ATTACKS)
def test_no_query_reaches_beyond_the_tables(
    sql: str, locked: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused before it runs; and if it did run all the same, it would read and change nothing."""
    monkeypatch.setenv("NEWSKILLS_TEST_SECRET", SECRET)
    file = tmp_path / "secret.csv"
    file.write_text(f"{SECRET}\n{SECRET}\n")
    (tmp_path / "schema.sql").write_text("SELECT 1;")
    before = sorted(os.listdir(tmp_path))
    attack = sql.replace("{file}", str(file)).replace("{folder}", str(tmp_path))
    samples = locked.execute("SELECT count(*) FROM samples").fetchone()
    caught = []
    # what is no statement at all gives no result: an AttributeError of fetchall
    for attempt in (lambda: check_statement(duckdb, attack), lambda: locked.execute(attack).fetchall()):
        try:
            assert SECRET not in str(attempt())
        except (NewskillsError, duckdb.Error, TypeError, AttributeError) as error:
            caught.append(str(error))
    assert caught
    assert SECRET not in "".join(caught)
    assert sorted(os.listdir(tmp_path)) == before
    assert locked.execute("SELECT count(*) FROM samples").fetchone() == samples


@pytest.mark.parametrize(
    "sql", [ATTACKS[1], ATTACKS[9], ATTACKS[14], ATTACKS[17], *ATTACKS[-6:], "SELECT " + "1," * 90_000]
)
def test_attacks_end_in_one_sentence(sql: str, results: Path) -> None:
    with pytest.raises(DataError) as caught:
        analysis.query(sql.replace("{file}", __file__).replace("{folder}", "/tmp"), results)
    assert "\n" not in str(caught.value)


def test_no_setting_tells_of_this_machine(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWSKILLS_TEST_SECRET", SECRET)
    told = str(rows("SELECT * FROM duckdb_settings()", results)) + str(
        rows("SELECT * FROM duckdb_secrets()", results)
    )
    assert SECRET not in told
    assert str(Path.home() / ".duckdb") not in told


def test_the_query_runs_without_variables_of_the_user(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table function that reads the environment of its own process would find nothing."""
    monkeypatch.setenv("DUCKDB_HOME", SECRET)
    assert SECRET not in str(rows("SELECT * FROM duckdb_settings()", results))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM range(1000000000000)",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r",
        "SELECT sum(length(repeat('x', 500000000 + range % 2))) FROM range(100000)",
    ],
)
def test_a_query_that_never_ends_is_stopped(sql: str, results: Path) -> None:
    begin = time.monotonic()
    with pytest.raises(DataError, match=r"more than 1 seconds and was stopped\. Give it more: --time_limit"):
        analysis.query(sql, results, time_limit=1)
    assert time.monotonic() - begin < 60


def test_a_query_that_takes_all_memory_is_stopped(results: Path) -> None:
    with pytest.raises(DataError, match=r"more than 200 MB of memory\. Give it more: --memory_limit"):
        analysis.query("SELECT list(range) FROM range(1000000000)", results, memory_limit=200)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT toknes FROM samples", "There is no column 'toknes'; did you mean 'tokens'?"),
        ("SELECT s.replies FROM samples s", "There is no column 'replies'; did you mean 'reply'?"),
        ("SELECT * FROM sampels", "There is no table 'sampels'; did you mean 'samples'?"),
        ("SELECT * FROM samples WHERE outcome = 1", "The query is wrong: Could not convert string"),
        ("SELEC 1", 'The query is wrong: syntax error at or near "SELEC".'),
        ("SELECT sum(id) FROM samples", "The query is wrong: No function matches"),
        (
            "DROP TABLE samples",
            "A query only reads: it begins with SELECT, FROM, WITH or DESCRIBE, and this is DROP.",
        ),
        ("SELECT 1; SELECT 2", "A query is one statement; this one has 2."),
    ],
)
def test_what_is_wrong_is_one_sentence(sql: str, said: str, results: Path) -> None:
    with pytest.raises(DataError) as caught:
        analysis.query(sql, results)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_columns_that_some_runs_lack_are_null(tmp_path: Path) -> None:
    write_run(tmp_path / "a", {None: [record(0, True)]})
    write_run(tmp_path / "b", {None: [record(0, True, reasoning_content="Hm.", why="exact (box)")]})
    assert rows("SELECT run, reasoning, why FROM samples ORDER BY run", tmp_path) == [
        ("a", None, None),
        ("b", "Hm.", "exact (box)"),
    ]
