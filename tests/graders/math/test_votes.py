# SPDX-License-Identifier: Apache-2.0
"""Which answers vote together: an equivalence, whatever the order, and never at any cost."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graders.math.test_math_cost import HOSTILE

from newskills.base.protocols import ComparesAnswers
from newskills.graders import make_grader
from newskills.graders.voting import groups
from newskills.graders.voting.groups import group_votes
from newskills.graders.voting.values import same_answer

SPELLINGS = (
    ("0.5", r"\frac12", r"\frac{1}{2}", r"50\%", "1/2", r"\dfrac{2}{4}"),
    ("1,000", "1000", r"\$1000", "10^3", "1000.0"),
    ("x=4", "4", "4.0", r"\sqrt{16}"),
    ("(1,2)", "(1, 2)", r"\left(1,2\right)"),
    ("(x-1)(x+1)", "x^2-1"),
    (r"2\sqrt{2}", r"\sqrt8", r"\sqrt{8}"),
    ("A", "(A)", r"\text{A}"),
    ("{1,2}", r"\{2, 1\}"),
    ("3",),
    ("-3",),
    ("5 or 6", "5, 6"),
    (r"\text{Evelyn}", "Evelyn"),
)
VALUE_OF = {text: number for number, texts in enumerate(SPELLINGS) for text in texts}


@pytest.mark.parametrize("texts", SPELLINGS)
def test_spellings_of_a_value_are_one_group(texts: Sequence[str]) -> None:
    assert len(set(group_votes(texts, same_answer))) == 1


@settings(deadline=None)
@given(st.lists(st.none() | st.sampled_from(sorted(VALUE_OF)), max_size=12))
def test_answers_are_in_one_group_where_they_have_one_value(answers: list[str | None]) -> None:
    groups = group_votes(answers, same_answer)
    for (answer, group), (other, other_group) in itertools.combinations(zip(answers, groups, strict=True), 2):
        if answer is None or other is None:
            continue
        assert (group == other_group) == (VALUE_OF[answer] == VALUE_OF[other]), (answer, other)
    assert [group is None for group in groups] == [answer is None for answer in answers]


@settings(deadline=None)
@given(st.permutations(["5 cm", "5", "5 kg", "5 kg", "1/3", "0.333333", "0.33333349", "50", r"50\%", "0.5"]))
def test_groups_do_not_depend_on_the_order_and_hold_no_two_that_differ(answers: list[str]) -> None:
    groups = group_votes(answers, same_answer)
    assert dict(zip(answers, groups, strict=True)) == dict(
        zip(sorted(answers), group_votes(sorted(answers), same_answer), strict=True)
    )
    for (answer, group), (other, other_group) in itertools.combinations(zip(answers, groups, strict=True), 2):
        if group == other_group:
            assert same_answer(answer, other)
            assert same_answer(other, answer)


def test_frequent_answers_are_placed_first() -> None:
    """5 links 5 cm and 5 kg, which differ: it joins those who have more votes."""
    assert group_votes(["5 cm", "5", "5 kg", "5 kg"], same_answer) == ["5 cm", "5 kg", "5 kg", "5 kg"]
    assert group_votes(["5 cm", "5", "5 kg", "5 cm"], same_answer) == ["5 cm", "5 cm", "5 kg", "5 cm"]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("50", r"50\%"),
        ("5 cm", "5 kg"),
        ("(1,2)", "(2,1)"),
        ("1,2", "1"),
        ("x+1", "x+2"),
        ("", "0"),
        ("5 or 6", "5"),
    ],
)
def test_other_values_vote_apart(left: str, right: str) -> None:
    assert not same_answer(left, right)
    assert not same_answer(right, left)


def test_what_only_computer_algebra_knows_votes_by_its_text() -> None:
    """It may take seconds, and its limit needs a process of its own."""
    assert not same_answer(r"\int_0^1 x^2\,dx", r"\frac13")
    assert same_answer(r"\int_0^1 x^2\,dx", r"\int_0^1 x^2\,dx")


def test_comparisons_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def never(left: str, right: str) -> bool:
        asked.append((left, right))
        return False

    monkeypatch.setattr(groups, "MAX_COMPARISONS", 10)
    assert len(set(group_votes([str(number) for number in range(40)], never))) == 40
    assert len(asked) == 10


def test_comparisons_are_bounded_in_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def costly(left: str, right: str) -> bool:
        asked.append((left, right))
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return False

    monkeypatch.setattr(groups, "CPU_SECONDS", 0.1)
    assert len(set(group_votes([str(number) for number in range(40)], costly))) == 40
    assert len(asked) <= 6


def test_hostile_answers_are_left_alone() -> None:
    answers = [*HOSTILE.values(), "5", "5.0", "9" * 5_000, "9" * 5_000 + ".0"]
    groups = group_votes(answers, same_answer)
    assert len(set(groups)) == len(answers) - 1


@pytest.mark.parametrize(
    ("grader", "same", "other"),
    [
        ("math", ("0.5", r"\frac12"), ("3", "4")),
        ("exact", ("Saint  Malo", "saint malo"), ("red", "blue")),
        ("gaia", ("$1,200", "1200"), ("red, blue", "blue, red")),
    ],
)
def test_graders_say_which_answers_are_the_same(
    grader: str, same: tuple[str, str], other: tuple[str, str]
) -> None:
    made = make_grader(grader, {})
    assert isinstance(made, ComparesAnswers)
    assert made.same_answer(*same)
    assert not made.same_answer(*other)
