# SPDX-License-Identifier: Apache-2.0
"""Answers about workbooks, compared as what they are; and workbooks as text."""

from __future__ import annotations

import io
from datetime import date, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graders.plain import plain_grader

from newskills.base.benchmark import Source
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import prepare
from newskills.benchmarks.options import with_options
from newskills.benchmarks.workbooks import workbook_text

WORDS = {"Q": 1, "# of words": 7, "Xth word": "ALIBI", "Highest Score": 21}
RIGHT: list[tuple[Any, str]] = [
    ("D", "\\boxed{D}"),
    ("b", "\\boxed{\\text{B}}"),
    ("N", "It is (n). \\boxed{(N)}"),
    ("C", "The final answer is C"),
    (1661626, "\\boxed{1,661,626}"),
    ("$5753961", "\\boxed{5753961}"),
    ("$61,868", "\\boxed{\\$61{,}868}"),
    ("$983.01m", "\\boxed{983.01}"),
    ("$983.01m", "\\boxed{983010000}"),
    ("$983.01m", "\\boxed{\\$983.01 \\text{m}}"),
    ("18217 k", "\\boxed{18,217,000}"),
    ("18217 k", "\\boxed{18217k}"),
    ("9.424%", "\\boxed{9.424\\%}"),
    ("9.424%", "\\boxed{9.424}"),
    ("9.424%", "\\boxed{0.09424}"),
    ("1.539", "\\boxed{1.539}"),
    ("31 Dec 2029", "\\boxed{31 December 2029}"),
    ("31 Dec 2029", "\\boxed{2029-12-31}"),
    ("31 Dec 2029", "\\boxed{\\text{Dec 31, 2029}}"),
    ("2,957", "\\boxed{2957}"),
    ("2,3,4a", "\\boxed{2, 3, 4a}"),
    ("Antioch", "\\boxed{\\text{antioch}}"),
    ("EZTI", "\\boxed{EZTI}"),
    ("OS 4, 17236 k", "\\boxed{OS 4, 17,236 k}"),
    ("OS 4, 17236 k", "\\boxed{OS 4; 17236000}"),
    (WORDS, '\\boxed{{"Q": 1, "# of words": "7", "xth word": "alibi", "Highest Score": 21.0, "note": "x"}}'),
    (WORDS, "\\boxed{1, 7, ALIBI, 21}"),
    ([1, 2], "\\boxed{[1, 2]}"),
    (30, '\\boxed{{"answer": 30}}'),
]
WRONG: list[tuple[Any, str]] = [
    ("D", "\\boxed{C}"),
    ("D", "\\boxed{Delta}"),
    ("D", "\\boxed{A, B, C, D}"),
    (1661626, "\\boxed{1661627}"),
    ("$983.01m", "\\boxed{983.01k}"),
    ("18217 k", "\\boxed{18217 m}"),
    ("9.424%", "\\boxed{9.5}"),
    ("31 Dec 2029", "\\boxed{30 Dec 2029}"),
    ("31 Dec 2029", "\\boxed{31 Foo 2029}"),
    ("2,957", "\\boxed{29,57}"),
    ("Antioch", "\\boxed{Ani}"),
    ("OS 4, 17236 k", "\\boxed{17236 k, OS 4}"),
    ("OS 4, 17236 k", "\\boxed{OS 4}"),
    (WORDS, '\\boxed{{"Q": 1, "Xth word": "ALIBI", "Highest Score": 21}}'),
    (WORDS, "\\boxed{1, 7, BIALY, 21}"),
    ([1, 2], "\\boxed{[2, 1]}"),
    (30, "\\boxed{[28, 29, 30]}"),
    (30, '\\boxed{{"low": 29, "high": 30}}'),
]


@pytest.mark.parametrize(("gold", "reply"), RIGHT)
def test_right_answers(gold: Any, reply: str) -> None:
    score = plain_grader("dsbench", {}).grade({"expected_answer": gold, "generation": reply})
    assert (score.outcome, score.fields["symbolic_correct"]) == ("correct", True)


@pytest.mark.parametrize(("gold", "reply"), WRONG)
def test_wrong_answers(gold: Any, reply: str) -> None:
    score = plain_grader("dsbench", {}).grade({"expected_answer": gold, "generation": reply})
    assert (score.outcome, score.cause) == ("wrong", "model")


def test_what_is_no_answer_and_what_cannot_be_graded() -> None:
    grader = plain_grader("dsbench", {})
    assert grader.grade({"expected_answer": "A", "generation": ""}).outcome == "no_answer"
    short = grader.grade({"expected_answer": "A", "generation": "<think>so", "finish_reason": "length"})
    assert (short.outcome, short.cause) == ("no_answer", "truncation")
    assert grader.grade({"expected_answer": "", "generation": "\\boxed{A}"}).outcome == "unscored"


@given(st.text(max_size=80), st.sampled_from([gold for gold, _ in RIGHT]))
def test_any_reply_gets_a_verdict(reply: str, gold: Any) -> None:
    score = plain_grader("dsbench", {}).grade({"expected_answer": gold, "generation": f"\\boxed{{{reply}}}"})
    assert score.outcome in ("correct", "wrong", "no_answer", "unscored")


def test_workbooks_as_text() -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="no openpyxl here, which writes the workbook")
    pytest.importorskip("python_calamine", reason="no python-calamine here: pip install 'newskills[excel]'")
    book = openpyxl.Workbook()
    book.active.title = "Prices"
    for cells in (
        ["Item", "Price", None],
        ["a pear", 2.5, True],
        [date(2029, 12, 31), datetime(2029, 1, 2, 3), 7],
    ):
        book.active.append(cells)
    book.create_sheet("Empty")
    file = io.BytesIO()
    book.save(file)
    assert workbook_text("p.xlsx", file.getvalue()) == (
        "Workbook: p.xlsx\n\nSheet: Prices\nItem\tPrice\na pear\t2.5\tTRUE\n2029-12-31\t2029-01-02 03:00:00\t7\n\n"
        "Sheet: Empty\n"
    )
    with pytest.raises(ValueError, match=r"p\.xlsx is not a workbook"):
        workbook_text("p.xlsx", b"no workbook")


def test_options_of_its_data(tmp_path: Path) -> None:
    """Paths as the model's own machine has them, and the content of the workbooks beside them."""
    pytest.importorskip("python_calamine", reason="no python-calamine here: pip install 'newskills[excel]'")
    raw = Path(__file__).parents[2] / "benchmarks/raw/dsbench_da.zip"
    own = msgspec.structs.replace(get_benchmark("dsbench_da"), sources=(Source(path=str(raw), format="asset"),))
    changed = with_options(own, {"display_root": ["/data/"], "incontext_data": []})
    assert changed is not None
    (done,) = prepare(changed, data_dir=tmp_path).splits
    first = next(iter(read_rows(done.path)))
    assert first["excel_paths"] == "/data/90000001/crates.xlsx"
    assert "second\t1000000" in first["excel_content"]
    assert (done.path.parent / first["workbooks"][0]).is_file()
    assert all("answers" not in name for name in first["workbooks"])
    (plain,) = prepare(own, data_dir=tmp_path).splits
    first = next(iter(read_rows(plain.path)))
    assert first["excel_paths"] == first["workbooks"][0]
    assert "excel_content" not in first
