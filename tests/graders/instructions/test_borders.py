# SPDX-License-Identifier: Apache-2.0
"""IFBench's checks of words at the very border: one word, sentence or letter more or less decides."""

from __future__ import annotations

from typing import Any

import pytest
from tests.graders.instructions.test_checks import verdict

from newskills.graders.instructions.verbs import starts_with_verb

CASES: list[tuple[str, dict[str, Any], str, bool]] = [
    ("count:word_count_range", {"min_words": 3, "max_words": 4}, "one two", False),
    ("count:word_count_range", {"min_words": 3, "max_words": 4}, "one two three", True),
    ("count:word_count_range", {"min_words": 3, "max_words": 4}, "one two three four", True),
    ("count:word_count_range", {"min_words": 3, "max_words": 4}, "one two three four five", False),
    ("count:unique_word_count", {"N": 2}, "one One, one. two", True),
    ("count:unique_word_count", {"N": 3}, "one One, one. two", False),
    ("count:numbers", {"N": 2}, "1 and 22", True),
    ("count:numbers", {"N": 2}, "1 and 22 and 3", False),
    ("count:pronouns", {"N": 2}, "He/She ran", True),
    ("count:pronouns", {"N": 3}, "He/She ran", False),
    ("count:conjunctions", {"small_n": 2}, "and And", True),
    ("count:conjunctions", {"small_n": 3}, "and And band", False),
    ("count:person_names", {"N": 2}, "Emma, Liam and Emma", True),
    ("count:person_names", {"N": 3}, "Emma, Liam and Emmanuel", False),
    ("words:alphabet", {}, "a bee can dig", True),
    ("words:alphabet", {}, "yes zebras add", True),
    ("words:alphabet", {}, "a cat", False),
    ("words:alphabet", {}, "b a", False),
    ("words:vowel", {}, "a bed is", True),
    ("words:vowel", {}, "a bed is so", False),
    ("words:consonants", {}, "sting tree", True),
    ("words:consonants", {}, "sting a", False),
    ("words:palindrome", {}, "level radar civic refer rotor kayak madam tenet solos sagas", True),
    ("words:palindrome", {}, "level radar civic refer rotor kayak madam tenet solos noon", False),
    ("words:prime_lengths", {}, "to the seven reading", True),
    ("words:prime_lengths", {}, "to four", False),
    ("words:prime_lengths", {}, "a", False),
    ("words:repeats", {"small_n": 2}, "a b a", True),
    ("words:repeats", {"small_n": 2}, "a b a A", False),
    ("words:last_first", {}, "I see you. You see me. Me too.", True),
    ("words:last_first", {}, "I see you. We see me.", False),
    ("words:words_position", {"keyword": "key"}, "key key", True),
    ("words:words_position", {"keyword": "key"}, "key", False),
    ("words:words_position", {"keyword": "key"}, "a key b", True),
    ("words:words_position", {"keyword": "key"}, "a key b b", False),
    ("words:words_position", {"keyword": "key"}, "a b key b", False),
    ("words:keywords_specific_position", {"keyword": "k", "n": 2, "m": 2}, "One two. Three k.", True),
    ("words:keywords_specific_position", {"keyword": "k", "n": 2, "m": 2}, "One k. k three.", False),
    ("words:keywords_specific_position", {"keyword": "k", "n": 3, "m": 1}, "One k. k three.", False),
    ("words:keywords_specific_position", {"keyword": "k", "n": 0, "m": 1}, "One. k.", False),
    ("sentence:increment", {"small_n": 2}, "One. One two three.", True),
    ("sentence:increment", {"small_n": 2}, "One. One two.", False),
    ("sentence:keyword", {"word": "Eat", "N": 2}, "We see. They eat.", True),
    ("sentence:keyword", {"word": "eat", "N": 2}, "We eat. They see.", False),
    ("sentence:keyword", {"word": "eat", "N": 3}, "We eat. They eat.", False),
]


@pytest.mark.parametrize(("kind", "args", "text", "followed"), CASES)
def test_the_border(kind: str, args: dict[str, Any], text: str, followed: bool) -> None:
    assert verdict("ifbench", kind, args, text)[0] is followed


@pytest.mark.parametrize(
    ("share", "followed"), [(59.9, True), (58, True), (57.9, False), (62, True), (62.1, False)]
)
def test_trigrams_within_two_points(share: float, followed: bool) -> None:
    """Three of five trigrams are those of the reference."""
    args = {"percentage": share, "reference_text": "abcde"}
    assert verdict("ifbench", "ratio:overlap", args, "abcdexy")[0] is followed


@pytest.mark.parametrize(("percentage", "followed"), [(50, True), (49, False), (0, False)])
def test_the_share_of_stop_words(percentage: float, followed: bool) -> None:
    assert verdict("ifbench", "ratio:stop_words", {"percentage": percentage}, "the red and blue")[0] is followed


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("Apply it", True),
        ("Applies to all", True),
        ("Applied to all", True),
        ("Applying it", True),
        ("Applys it", False),
        ("Play it", True),
        ("Plays well", True),
        ("Played well", True),
        ("Plaies well", False),
        ("Stopped here", True),
        ("Stoped here", True),
        ("Teaches well", True),
        ("Teachs well", False),
        ("Making it", True),
        ("Went home", True),
        ("Can it", False),
        ("The end", False),
        ("", False),
    ],
)
def test_forms_of_verbs(text: str, verb: bool) -> None:
    assert starts_with_verb(text) is verb
