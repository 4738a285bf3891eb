# SPDX-License-Identifier: Apache-2.0
"""`ns export --to`: tables of results as files, for whatever reads them."""

from __future__ import annotations

import csv
from pathlib import Path

import duckdb
import pytest
from pyarrow import parquet
from tests.commands.running import ns
from tests.view.comparison.runs import answers, record, write_run

from newskills import analysis
from newskills.view.analysis.database import RESULT_TABLES

EVIL = '=HYPERLINK("x")\x1b[2J,\r\n"\u202e'


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_run(tmp_path / "results/base", {0: [*answers("+-?"), record(3, False, generation=EVIL)]})
    write_run(tmp_path / "results/tuned", {None: answers("++-")})
    return tmp_path


def test_parquet_has_all_tables_with_their_schema(results: Path) -> None:
    done = ns("ns export results --to parquet --output_dir out", cwd=results)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [f"out/{name}.parquet" for name in RESULT_TABLES]
    table = parquet.read_table(results / "out/samples.parquet")
    assert table.column_names == [column.name for column in RESULT_TABLES["samples"].columns]
    assert table.schema.metadata[b"newskills.schema_version"] == b"1"
    assert table.schema.field("tokens").metadata[b"unit"] == b"tokens"
    assert table.to_pylist() == analysis.samples(results / "results", table.column_names).to_pylist()
    assert (
        parquet.read_table(results / "out/runs.parquet").to_pylist()
        == analysis.runs(results / "results").to_pylist()
    )
    assert sorted(path.name for path in (results / "out").iterdir()) == sorted(
        f"{name}.parquet" for name in RESULT_TABLES
    )


def test_csv_is_read_by_any_program(results: Path) -> None:
    assert ns("ns export results/base results/tuned --to csv", cwd=results).returncode == 0
    with (results / "tables/samples.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["reply"] for row in rows] == [
        "\\boxed{1}",
        "\\boxed{1}",
        "\\boxed{2}",
        EVIL,
        "\\boxed{1}",
        "\\boxed{2}",
        "\\boxed{2}",
    ]
    assert (rows[2]["score"], rows[0]["tokens"], rows[0]["reasoning"]) == ("", "10", "")


def test_a_database_has_documented_tables(results: Path) -> None:
    assert ns("ns export results --to duckdb --output_dir out", cwd=results).returncode == 0
    assert ns("ns export results --to duckdb --output_dir out", cwd=results).returncode == 0  # replaces it
    assert [path.name for path in (results / "out").iterdir()] == ["results.duckdb"]
    connection = duckdb.connect(str(results / "out/results.duckdb"), read_only=True)
    sql = "SELECT run, count(*), count(score) FROM samples JOIN runs USING (run, benchmark) GROUP BY run ORDER BY run"
    assert connection.execute(sql).fetchall() == [("base", 4, 3), ("tuned", 3, 3)]
    comment = connection.execute("SELECT comment FROM duckdb_tables() WHERE table_name = 'samples'").fetchone()
    assert comment == ("one row for each sample; schema 1 of newskills.analysis",)


def test_what_is_wrong_is_said(results: Path) -> None:
    for words, said in (
        ("--to parquet --format csv", "--to parquet writes files, so --format and --dest cannot be used with it."),
        ("--to parquet --dest wandb", "--to parquet writes files"),
        ("--to excel", "the choices are csv, duckdb, parquet"),
    ):
        done = ns(f"ns export results {words}", cwd=results)
        assert done.returncode == 2
        assert said in done.stderr
    (results / "file").touch()
    done = ns("ns export results --to parquet --output_dir file", cwd=results)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    dry = ns("ns export results --to duckdb --output_dir dry --dry_run", cwd=results)
    assert "dry/results.duckdb" in dry.stdout
    assert not (results / "dry").exists()
