# SPDX-License-Identifier: Apache-2.0
"""ROUGE-L against its definition: tables of longest common subsequences, written down without tricks of bits."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.graders.reading.rouge import (
    _common_places,
    longest_common,
    rouge_l,
    rouge_l_of_lines,
    rouge_l_of_sentences,
)

WORDS = st.lists(st.sampled_from("abc"), max_size=7)
TEXTS = st.lists(st.lists(st.sampled_from(["ant", "bee", "cat", "dog"]), max_size=5).map(" ".join), max_size=3)


def table(first: list[str], second: list[str]) -> int:
    lengths = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, a in enumerate(first, 1):
        for j, b in enumerate(second, 1):
            lengths[i][j] = lengths[i - 1][j - 1] + 1 if a == b else max(lengths[i - 1][j], lengths[i][j - 1])
    return lengths[-1][-1]


def is_within(words: list[str], text: list[str]) -> bool:
    rest = iter(text)
    return all(word in rest for word in words)


@given(WORDS, WORDS)
def test_where_a_longest_common_subsequence_is(first: list[str], second: list[str]) -> None:
    size = table(first, second)
    assert longest_common(first, second) == longest_common(second, first) == size
    for late in (True, False):
        places = sorted(_common_places(first, second, late=late))
        assert len(places) == size
        assert is_within([first[place] for place in places], second)
    everywhere = [
        places for places in combinations(range(len(first)), size) if is_within([first[p] for p in places], second)
    ]
    assert tuple(sorted(_common_places(first, second, late=True))) == max(
        everywhere, key=lambda places: places[::-1]
    )


def test_of_several_it_is_the_last_of_either_side() -> None:
    assert _common_places(list("ab"), list("ba"), late=True) == {1}
    assert _common_places(list("ab"), list("ba"), late=False) == {0}


def f1(common: int, first: int, second: int) -> float:
    return 2 * common / (first + second) if common else 0.0


@given(TEXTS, TEXTS)
def test_of_one_text(answer: list[str], gold: list[str]) -> None:
    first, second = " ".join(answer).split(), " ".join(gold).split()
    assert rouge_l(" ".join(answer), " ".join(gold).upper(), "en") == f1(
        table(first, second), len(first), len(second)
    )
    assert rouge_l(" ".join(answer), " ".join(gold), "zh") == f1(table(first, second), len(first), len(second))


def test_words_of_english_and_of_other_languages() -> None:
    assert rouge_l("The cat's 2 hats!", "cat s hats", "en") == f1(3, 5, 3)
    assert rouge_l("Le chat noir.", "chat blanc", "fr") == f1(1, 2, 2)
    assert rouge_l("猫は黒い", "猫は白い", "ja") == f1(3, 4, 4)
    assert rouge_l("", "", "en") == 0.0


@given(TEXTS, TEXTS)
def test_of_lines_each_word_counts_as_often_as_both_have_it(answer: list[str], gold: list[str]) -> None:
    ours, theirs = ([line.split() for line in lines if line] for lines in (answer, gold))
    size = sum(map(len, [*ours, *theirs]))
    left = [Counter(word for line in lines for word in line) for lines in (ours, theirs)]
    common = 0
    for right in theirs:
        places = set[int]().union(*(_common_places(right, line, late=False) for line in ours))
        for place in sorted(places):
            if all(counts[right[place]] > 0 for counts in left):
                common += 1
                for counts in left:
                    counts[right[place]] -= 1
    expected = 2 * common / size if ours and theirs else 0.0
    assert rouge_l_of_lines("\n".join(answer).upper(), "\n".join(gold)) == expected


def test_of_lines_by_hand() -> None:
    assert rouge_l_of_lines("a b\nc d", "a b c d") == 1.0
    assert rouge_l_of_lines("a a a", "a b") == f1(1, 3, 2)
    assert rouge_l_of_lines("a\nb", "b\na") == 1.0
    assert rouge_l_of_lines("x", "y") == rouge_l_of_lines("", "y") == rouge_l_of_lines("x", "\n") == 0.0


def test_of_sentences_distinct_words_count() -> None:
    assert rouge_l_of_sentences("a b a. c", "a b c") == pytest.approx(1.0)
    assert rouge_l_of_sentences("a b", "b a") == f1(1, 2, 2)
    assert rouge_l_of_sentences("a a b. b c", "a c. d") == f1(2, 3, 3)
    assert rouge_l_of_sentences("a. .", "a") == f1(1, 2, 1), "a part of blanks is one empty word"
    assert rouge_l_of_sentences("", "a") == rouge_l_of_sentences("a", "...") == 0.0


def test_four_thousand_words_count_over_all_lines() -> None:
    gold = "z " * 10
    assert rouge_l_of_lines("\n".join(["y " * 3_990, "z " * 20]), gold) == f1(10, 4_000, 10)
    assert rouge_l_of_lines("y " * 4_000 + "\nz", gold) == 0.0
    assert rouge_l_of_lines("y " * 4_000 + "z", gold) == 0.0
    assert rouge_l_of_sentences("y. " + "x " * 3_999 + ". z", "z") == 0.0
    assert rouge_l_of_sentences("y. " + "x " * 3_998 + ". z", "z") == f1(1, 3, 1)
    assert rouge_l("y " * 3_999 + "z", "z", "en") == f1(1, 4_000, 1)
    assert rouge_l("y " * 4_000 + "z", "z", "en") == 0.0
