# SPDX-License-Identifier: Apache-2.0
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from unicodedata import east_asian_width

import pytest
from tests.commands.running import ns
from tests.view.comparison.runs import answers, record, write_run

import newskills

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202eabc <script>alert(1)</script>\r\x08"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    rows = answers("++-?")
    rows.append(record(4, False, outcome_cause="truncation", finish_reason="length", generation="so " * 3000))
    rows.append(record(5, False, outcome="no_answer", generation=EVIL, predicted_answer=None))
    rows.append(record(6, False, problem="数" * 200, subset_for_metrics=["numbers", "chinese"]))
    write_run(tmp_path / "a", {0: rows, 1: answers("-" * 7)})
    return tmp_path


def columns(line: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in line)


def test_wrong_and_cut_off_samples(run: Path) -> None:
    shown = ns("ns samples a --outcome wrong --cause truncation -n 5", cwd=run)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("gsm8k · q4 · seed 0 · wrong (truncation)\n")
    assert "expected   5\n" in shown.stdout
    assert "more characters; --full shows them" in shown.stdout
    assert shown.stdout.endswith("1 shown; these are all\n")
    assert "more characters" not in ns("ns samples a --cause truncation --full", cwd=run).stdout


def test_lines_fit_and_nothing_is_obeyed_by_the_terminal(run: Path) -> None:
    shown = ns("ns samples a -n 100", cwd=run).stdout
    assert max(map(columns, shown.splitlines())) <= 80
    assert all(character == "\n" or character.isprintable() for character in shown)
    assert "\\x1b[2J\\x1b]0;owned\\x07\\x9b31m" in shown


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("--seed 0 --outcome correct", ["q0", "q1"]),
        ("--outcome unscored", ["q3"]),
        ("--id q2", ["q2", "q2"]),
        ("--subset chinese", ["q6"]),
        ("--search OWNED", ["q5"]),
        ("--outcome no_answer --cause truncation", []),
        ("-n 3", ["q0", "q1", "q2"]),
    ],
)
def test_samples_are_chosen(run: Path, words: str, ids: list[str]) -> None:
    lines = ns(f"ns samples a --json {words}", cwd=run).stdout.splitlines()
    assert [json.loads(line)["record"]["id"] for line in lines] == ids


def test_a_person_at_a_terminal_gets_a_pager(run: Path) -> None:
    leader, follower = pty.openpty()
    env = {**os.environ, "PAGER": "tr a-z A-Z", "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-m", "newskills", "samples", "a", "-n", "1"],
        cwd=run,
        env=env,
        stdin=follower,
        stdout=follower,
        stderr=subprocess.PIPE,
    )
    os.close(follower)
    shown = b""
    try:
        while block := os.read(leader, 4096):
            shown += block
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    assert process.wait(300) == 0, process.stderr.read()
    process.stderr.close()
    assert b"GSM8K" in shown
    assert b"1 SHOWN" in shown


def test_broken_lines_are_counted(run: Path) -> None:
    path = run / "a/eval-results/gsm8k/output-rs1.jsonl"
    path.write_text(path.read_text() + "{broken\n[]\n")
    shown = ns("ns samples a -n 100", cwd=run)
    assert shown.returncode == 0
    assert "gsm8k: 2 lines cannot be read" in shown.stderr
    assert "14 shown; these are all" in shown.stdout


def test_what_is_not_there_is_said(run: Path) -> None:
    (run / "empty").mkdir()
    empty = ns("ns samples empty", cwd=run)
    assert (empty.returncode, "has no results" in empty.stderr) == (2, True)
    unknown = ns("ns samples a --benchmarks gsm8", cwd=run)
    assert "did you mean 'gsm8k'" in unknown.stderr
    assert ns("ns samples a --outcome wrnog", cwd=run).returncode == 2
    assert ns("ns samples a --search nowhere", cwd=run).stdout == "No sample fits.\n"
    place = run / "a/eval-results/math-500"
    place.mkdir()
    (place / "output.jsonl-async").write_text('{"id": 1}\n')
    assert "math-500 has no finished output files" in ns("ns samples a -n 100", cwd=run).stderr
    assert len(newskills.samples(results_dir=str(run / "a"), outcome="wrong", number=2)) == 2
