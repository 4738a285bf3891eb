# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.records import Message, Request
from newskills.solve.selection.candidates import Candidate, visible_part
from newskills.solve.selection.comparing import (
    chosen_number,
    comparable_candidates,
    even_groups,
    last_match,
    problem_of,
)
from newskills.solve.selection.config import GenSelectPrompt, GenSynthesisPrompt, ParallelThinking

SELECT, WRITE = GenSelectPrompt().regex, GenSynthesisPrompt().regex


@given(st.lists(st.integers()), st.integers(2, 40))
def test_windows_hold_everything_once_in_order_and_are_about_equal(items: list[int], size: int) -> None:
    groups = even_groups(items, size)
    assert [item for group in groups for item in group] == items
    sizes = [len(group) for group in groups]
    assert all(0 < length <= size for length in sizes)
    assert not sizes or max(sizes) - min(sizes) <= 1
    assert len(groups) == -(-len(items) // size)


@given(st.text(), st.integers(1, 64))
def test_a_choice_is_one_of_the_shown_or_none(text: str, count: int) -> None:
    for said in (text, f"{text}Judgment: {text}"):
        index = chosen_number(SELECT, said, count)
        assert index is None or 0 <= index < count


@given(st.text(), st.lists(st.integers(0, 10**30), min_size=1), st.integers(1, 64))
def test_the_last_judgment_counts(text: str, numbers: list[int], count: int) -> None:
    said = "\n".join([text, *(f"Judgement: {number}" for number in numbers)])
    assert chosen_number(SELECT, said, count) == (numbers[-1] if numbers[-1] < count else None)


def test_choices_that_are_none() -> None:
    for said in ("", "3", "Judgment: three", "Judgment: 8", "Judgment: -1", "Judgment: " + "9" * 10_000):
        assert chosen_number(SELECT, said, 8) is None
    assert chosen_number(SELECT, "Judgment: 9\nJudgement: 07", 8) == 7
    assert chosen_number(r"best is (\w+)", "best is it", 8) is None


def test_the_last_solution_between_the_tags_is_taken() -> None:
    said = "<NEW_SOLUTION>a</NEW_SOLUTION> No.\n<NEW_SOLUTION>\nb\nc</NEW_SOLUTION>"
    assert last_match(WRITE, said) == "\nb\nc"
    assert last_match(WRITE, "<NEW_SOLUTION> cut off") is None


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "text", ["Judgment: ", "<NEW_SOLUTION>", "<", "<NEW_SOLUTION>a</NEW_SOLUTION>", "</NEW_SOLUTION>"]
)
def test_repetitive_texts_take_no_time(text: str) -> None:
    for regex in (SELECT, WRITE):
        last_match(regex, text * 100_000)


def test_only_what_follows_the_reasoning_is_seen() -> None:
    assert visible_part("hm</think> no, hm</think> 4 ", "</think>", cut=False) == "4"
    assert visible_part(" 4 ", "</think>", cut=False) == "4"
    assert visible_part("<think>4", "</think>", cut=False) == ""
    assert visible_part("hm, 4", "</think>", cut=True) == ""


def test_what_is_compared() -> None:
    texts = ["a", " ", "b" * 5]
    found = [Candidate(number=number, text=text, fields={}) for number, text in enumerate(texts)]

    def kept(**settings: object) -> list[str]:
        return [one.text for one in comparable_candidates(found, ParallelThinking(**settings))]

    assert kept() == ["a", "b" * 5]
    assert kept(solution_length_cap=4) == ["a"]
    assert kept(solution_length_cap=None, filter_incomplete_solutions=False) == texts


def test_the_problem_is_the_rows_or_what_was_asked() -> None:
    asked = Request(messages=[Message(role="system", content="S"), Message(role="user", content="Q")])
    assert problem_of({"problem": "P"}, asked) == "P"
    assert problem_of({}, asked) == "Q"
    parts = Request(
        messages=[Message(role="user", content=[{"type": "text", "text": "Q"}, {"type": "image_url"}])]
    )
    assert problem_of({}, parts) == "Q"
    assert problem_of({}, Request(prompt="whole")) == "whole"
