# SPDX-License-Identifier: Apache-2.0
"""Every line of `run.log`, word for word: people search these files, and nothing else tells what a job did."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.run.support import make_unit

from newskills import __version__
from newskills.base.records import Failure, Ledger
from newskills.run.planning.spec import RunSpec, UnitResult
from newskills.run.records.journal import Journal

STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d{4} (\d+) (.*)")


def written(folder: Path) -> list[str]:
    """The lines without time and process, which each of them must have."""
    matches = [STAMP.fullmatch(line) for line in (folder / "run.log").read_text().splitlines()]
    assert all(match is not None and int(match[1]) == os.getpid() for match in matches)
    return [match[2] for match in matches if match]


def test_every_line_of_an_entry_has_its_time_and_process_and_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "yet"
    Journal(str(folder)).write("one\ntwo \x1b[31m")
    Journal(str(folder)).write("see http://joe:secret@host/x \ud800")
    assert written(folder) == ["one", r"two \x1b[31m", r"see http://***@host/x \ud800"]


def test_without_a_folder_or_where_it_cannot_be_written_it_keeps_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Journal("").write("text")
    (tmp_path / "file").touch()
    Journal(str(tmp_path / "file" / "logs")).write("text")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b""


def test_it_begins_with_each_model_once_and_what_is_to_do(tmp_path: Path) -> None:
    units = tuple(
        make_unit(tmp_path, "http://h/v1", seed=seed, server={"model": model})
        for seed, model in enumerate(("a", "b", "a"))
    )
    Journal(str(tmp_path)).begin(RunSpec(units=units, output_dir=""), ["first", "second"])
    assert written(tmp_path) == [
        f"newskills {__version__} on {os.uname().nodename} begins: model a, b",
        "to do: first",
        "to do: second",
    ]


def test_a_failed_row_has_a_status_where_the_server_gave_one(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    journal.note_failure("gsm8k", "r1", Failure(kind="RateLimitError", cause="provider", message="m", status=429))
    journal.note_failure("gsm8k", "r2", Failure(kind="TimeoutError", cause="timeout", message="m"))
    assert written(tmp_path) == [
        "gsm8k: row r1 failed: RateLimitError (provider, HTTP 429)",
        "gsm8k: row r2 failed: TimeoutError (timeout)",
    ]


BARE = UnitResult(name="u", seed=None, chunk=None, output="o.jsonl", status="done", rows=1)
FULL = UnitResult(
    name="u",
    seed=0,
    chunk=None,
    output="o.jsonl",
    status="failed",
    rows=12,
    kept=5,
    generated=6,
    failures=1,
    output_tokens=0,
    seconds=61.26,
    ledger=Ledger(
        correct=4,
        wrong=3,
        no_answer=2,
        unscored=1,
        causes={"timeout": 1, "no_box": 2},
        finish_reasons={"stop": 9, "content_filter": 2, "length": 2},
    ),
    note="see above",
)


@pytest.mark.parametrize(
    ("unit", "line"),
    [
        (BARE, "o.jsonl: done after 0.0 s: 1 row, 0 kept, 0 generated, 0 failed"),
        (
            FULL,
            "o.jsonl: failed after 61.3 s: 12 rows, 5 kept, 6 generated, 1 failed, 0 tokens, 4 correct, 3 wrong, "
            "2 no answer, 1 unscored (causes: no_box 2, timeout 1), "
            "finish reasons: stop 9, content_filter 2, length 2, see above",
        ),
    ],
)
def test_it_ends_with_the_counts_of_each_unit(tmp_path: Path, unit: UnitResult, line: str) -> None:
    Journal(str(tmp_path)).end([unit], 1, 3, "Stopped.")
    Journal(str(tmp_path)).end([], 0, 0, "")
    assert written(tmp_path) == [
        line,
        "ends with exit code 1 after 3 retries. Stopped.",
        "ends with exit code 0 after 0 retries.",
    ]


@pytest.mark.parametrize("outcome", ["correct", "wrong", "no_answer", "unscored"])
def test_one_attempt_of_any_outcome_is_enough_for_a_ledger(tmp_path: Path, outcome: str) -> None:
    unit = UnitResult(
        name="u", seed=0, chunk=None, output="o", status="done", rows=1, ledger=Ledger(**{outcome: 1})
    )
    Journal(str(tmp_path)).end([unit], 0, 0, "")
    counts = ", ".join(
        f"{int(name == outcome)} {name.replace('_', ' ')}"
        for name in ("correct", "wrong", "no_answer", "unscored")
    )
    assert written(tmp_path)[0].endswith(f"0 failed, {counts}")
