# SPDX-License-Identifier: Apache-2.0
"""`ns query` and `ns samples --where` as they are typed."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from tests.commands.running import ns
from tests.view.comparison.runs import answers, record, write_run

EVIL = '\x1b[2J\x1b]0;owned\x07\x9b31m\u202eabc\n\ttab\r\x08 "quoted", 1'


@pytest.fixture
def results(tmp_path: Path) -> Path:
    assert duckdb.__version__
    write_run(tmp_path / "base", {0: [*answers("+-"), record(2, False, generation=EVIL)]})
    write_run(tmp_path / "tuned", {0: answers("++-")})
    return tmp_path


def test_a_table_fits_80_columns_and_steers_no_terminal(results: Path) -> None:
    shown = ns(
        "ns query 'SELECT run, outcome, count(*) AS n FROM samples GROUP BY ALL ORDER BY ALL' .", cwd=results
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines() == [
        "run    outcome  n",
        "base   correct  1",
        "base   wrong    2",
        "tuned  correct  2",
        "tuned  wrong    1",
        "4 rows",
    ]
    shown = ns("ns query 'SELECT * FROM samples ORDER BY ALL' base", cwd=results)
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert all(character == "\n" or character.isprintable() for character in shown.stdout)
    assert "\\x1b[2J" in shown.stdout
    hostile = ns("ns query", 'SELECT 1 AS "\x1b[2J"', "base", cwd=results)
    assert "\x1b" not in hostile.stdout


def test_json_and_csv_have_everything(results: Path) -> None:
    sql = "SELECT id, reply, tokens, cause, score = 1 AS ok, [1, NULL] AS l FROM samples ORDER BY id"
    lines = ns("ns query", sql, "base", "--json", cwd=results).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert rows[0] == {"id": "q0", "reply": "\\boxed{1}", "tokens": 10, "cause": None, "ok": True, "l": [1, None]}
    assert rows[2]["reply"] == EVIL
    done = subprocess.run(
        [sys.executable, "-m", "newskills", "query", sql, "base", "--csv"],
        cwd=results,
        capture_output=True,
        check=True,
    )
    table = list(csv.DictReader(io.StringIO(done.stdout.decode(), newline="")))
    assert [row["reply"] for row in table] == ["\\boxed{1}", "\\boxed{1}", EVIL]
    assert table[0]["cause"] == ""


def test_a_table_for_a_paper(results: Path) -> None:
    sql = r"""SELECT 'a_b & 5% \ ^ {x}' AS "x_y", NULL AS z, 1.5 AS n"""
    shown = ns("ns query", sql, "base", "--latex", cwd=results).stdout
    assert shown.splitlines() == [
        r"\begin{tabular}{llr}",
        r"\toprule",
        r"x\_y & z & n \\",
        r"\midrule",
        r"a\_b \& 5\% \textbackslash{} \textasciicircum{} \{x\} & -- & 1.5 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_long_results_are_cut_where_a_person_reads(results: Path) -> None:
    shown = ns("ns query 'SELECT range AS n FROM range(100000)' base --rows 3", cwd=results).stdout
    assert shown.splitlines() == ["n", "0", "1", "2", "the first 3 rows; --rows N shows more"]
    assert (
        len(ns("ns query 'SELECT range AS n FROM range(10000)' base --json", cwd=results).stdout.splitlines())
        == 10_000
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("'SELECT toknes FROM samples' .", "error: There is no column 'toknes'; did you mean 'tokens'?"),
        ("'COPY samples TO x' .", "error: A query only reads"),
        (
            "'SELECT count(*) FROM range(1000000000000)' . --time_limit 0.5",
            "error: The query took more than 0.5 seconds",
        ),
        ("'SELECT 1' . --json --csv", "error: --json and --csv cannot be used together."),
        ("'SELECT 1' . --csv --latex", "error: --csv and --latex cannot be used together."),
        ("'SELECT 1' nowhere", "error:"),
        ("'SELECT 1'", "error: ns query: RESULTS is missing"),
    ],
)
def test_what_is_wrong_ends_with_code_2(words: str, said: str, results: Path) -> None:
    done = ns(f"ns query {words}", cwd=results)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_left_out_is_noted(results: Path) -> None:
    output = results / "base/eval-results/gsm8k/output-rs0.jsonl"
    output.write_text(output.read_text() + '{"id": "half')
    done = ns("ns query 'SELECT count(*) AS n FROM samples' .", cwd=results)
    assert done.stdout == "n\n6\n1 row\n"
    assert "note: base (gsm8k): 1 line of output-rs0.jsonl cannot be read." in done.stderr


def test_samples_are_chosen_by_a_filter(results: Path) -> None:
    done = ns("ns samples base --json", "--where", "outcome = wrong and tokens > 11", cwd=results)
    assert [json.loads(line)["record"]["id"] for line in done.stdout.splitlines()] == ["q2"]
    done = ns("ns samples base --where", "outcom = wrong", cwd=results)
    assert (done.returncode, done.stderr) == (
        2,
        "error: Unknown column in the filter 'outcom'; did you mean 'outcome'?\n",
    )
