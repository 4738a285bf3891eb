# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from newskills.graders.voting.values import same_answer
from newskills.solve.selection.votes import elect_majority


def test_the_most_frequent_answer_wins_and_the_first_of_equals() -> None:
    votes = elect_majority(["3", "5", None, "5", "3", "4"])
    assert (votes.winner, votes.counts) == (0, {"3": 2, "5": 2, "4": 1})


def test_no_answers_elect_nobody() -> None:
    assert elect_majority([None, None]).winner is None
    assert elect_majority([]).counts == {}


def test_equal_answers_vote_together() -> None:
    votes = elect_majority(["7", r"\frac{1}{2}", "0.5", "$1/2$"], same_answer)
    assert (votes.winner, votes.counts) == (1, {r"\frac{1}{2}": 3, "7": 1})


def test_percent_is_no_plain_number() -> None:
    assert not same_answer("50", r"50\%")


@given(st.lists(st.none() | st.sampled_from("abc")))
def test_votes_are_counted_once_each(answers: list[str | None]) -> None:
    votes = elect_majority(answers)
    assert votes.counts == Counter(answer for answer in answers if answer is not None)
    if votes.winner is not None:
        assert votes.counts[str(answers[votes.winner])] == max(votes.counts.values())
