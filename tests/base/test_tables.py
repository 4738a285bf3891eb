# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from newskills.base.tables import WIDTH, stacked_blocks, table_lines, wrap_text

SCORES = [
    ["evaluation_mode", "num_entries", "avg_tokens", "gen_seconds", "symbolic_correct", "no_answer"],
    ["pass@1[avg-of-3]", "4", "9", "60", "41.67% ± 14.43%", "25.00%"],
    ["majority@3", "4", "9", "60", "50.00%", "0.00%"],
]


def test_figures_go_into_even_blocks_that_repeat_the_first_column() -> None:
    assert stacked_blocks(SCORES, WIDTH, " | ") == [
        [
            "evaluation_mode  | num_entries | avg_tokens | gen_seconds",
            "pass@1[avg-of-3] | 4           | 9          | 60         ",
            "majority@3       | 4           | 9          | 60         ",
        ],
        [
            "evaluation_mode  | symbolic_correct | no_answer",
            "pass@1[avg-of-3] | 41.67% ± 14.43%  | 25.00%   ",
            "majority@3       | 50.00%           | 0.00%    ",
        ],
    ]
    (whole,) = stacked_blocks(SCORES, 100, " | ")
    assert stacked_blocks(SCORES, None, " | ") == [whole]


def test_texts_are_wrapped_in_their_column() -> None:
    rows = [("[ok]", "python", "3.12"), ("[wrong]", "cluster", "the scheduler does not answer, " * 3)]
    assert table_lines(rows, width=50) == [
        "[ok]     python   3.12",
        "[wrong]  cluster  the scheduler does not answer,",
        "                  the scheduler does not answer,",
        "                  the scheduler does not answer,",
    ]


def test_what_does_not_fit_follows_below_its_row() -> None:
    folder = "/home/somebody/experiments/2026/gsm8k_1764"
    head = ("experiment", "cluster", "jobs", "folder")
    rows = [("gsm8k_1764", "dgx", "3", folder), ("a", "here", "12", "")]
    assert table_lines(rows, head, 50) == [
        "experiment  cluster  jobs",
        "gsm8k_1764  dgx      3",
        "    folder:",
        f"      {folder}",
        "a           here     12",
    ]
    assert table_lines(rows, head, None)[1] == f"gsm8k_1764  dgx      3     {folder}"


def test_a_word_longer_than_a_line_stays_whole() -> None:
    path = "/" + "x" * 100
    assert table_lines([("reads", path, "a note")], width=40) == ["reads", f"    {path}", "    a note"]
    assert wrap_text(f"see {path} there", 40, "  ", "  ") == ["  see", f"    {path}", "    there"]


def test_a_long_name_before_figures_goes_on_in_the_next_line() -> None:
    blocks = stacked_blocks([["benchmark", "before", "after"], ["n" * 30, "1.00", "2.00"]], 40, "  ")
    assert [line.rstrip() for block in blocks for line in block] == [
        "benchmark             before  after",
        "nnnnnnnnnnnnnnnnnnnn  1.00    2.00",
        "nnnnnnnnnn",
    ]


WORDS = st.lists(st.text("abc1.%", min_size=1, max_size=12), min_size=0, max_size=8).map(" ".join)


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.lists(WORDS, min_size=n, max_size=n), min_size=1)))
def test_no_line_is_longer_and_no_word_is_cut(rows: list[list[str]]) -> None:
    lines = table_lines(rows, width=120)
    assert max(map(len, lines)) <= 120
    shown = [word for line in lines for word in line.split()]
    assert sorted(shown) == sorted(word for row in rows for cell in row for word in cell.split())
