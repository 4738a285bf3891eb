# SPDX-License-Identifier: Apache-2.0
"""ROUGE-L (Lin 2004) of texts, and of summaries in two forms: as the packages rouge-score and rouge compute it.

Longest common subsequences cost O(tokens² / 64); of each text the first 4,000 tokens count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from newskills.graders.reading.overlap import squad_tokens

_LATIN_WORD = re.compile(r"[a-z0-9]+")
_MOST_TOKENS = 4_000


def rouge_l(answer: str, gold: str, language: str) -> float:
    """Return the F1 of the longest common subsequence.

    Of English, letters and digits are words, of other languages `squad_tokens`.
    """
    first, second = (
        (_LATIN_WORD.findall(text.lower()) if language == "en" else squad_tokens(text, language))[:_MOST_TOKENS]
        for text in (answer, gold)
    )
    common = longest_common(first, second)
    if common:
        return 2 * common / (len(first) + len(second))
    return 0.0


def rouge_l_of_lines(answer: str, gold: str) -> float:
    """Return rougeLsum of rouge-score: of each line of `gold`, the words that it shares with any line of the answer."""
    ours, theirs = (
        _cut_lines([_LATIN_WORD.findall(line) for line in text.lower().split("\n")]) for text in (answer, gold)
    )
    if not ours or not theirs:
        return 0.0
    left_ours, left_theirs = (Counter(word for line in lines for word in line) for lines in (ours, theirs))
    size = left_ours.total() + left_theirs.total()
    common = 0
    for right in theirs:
        for place in sorted(set[int]().union(*(_common_places(right, line, late=False) for line in ours))):
            word = right[place]
            if left_ours[word] and left_theirs[word]:
                common += 1
                left_ours[word] -= 1
                left_theirs[word] -= 1
    return 2 * common / size


def rouge_l_of_sentences(answer: str, gold: str) -> float:
    """Return rouge-l of the package rouge: distinct words, sentence by sentence."""
    ours, theirs = _sentence_words(answer), _sentence_words(gold)
    if not ours or not theirs:
        return 0.0
    common = {
        right[place] for right in theirs for line in ours for place in _common_places(right, line, late=True)
    }
    distinct = [len({word for sentence in sentences for word in sentence}) for sentences in (ours, theirs)]
    return 2 * len(common) / sum(distinct)


def _sentence_words(text: str) -> list[list[str]]:
    """Return the words of each part between full stops; a part of blanks alone is one empty word, as in the package."""
    return _cut_lines([part.split() or [""] for part in text.split(".") if part])


def _cut_lines(lines: Sequence[list[str]]) -> list[list[str]]:
    """Keep the lines that have words, up to the limit."""
    kept: list[list[str]] = []
    room = _MOST_TOKENS
    for line in lines:
        if line and room > 0:
            kept.append(line[:room])
            room -= len(kept[-1])
    return kept


def longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence: O(len(first) · len(second) / 64)."""
    return _common_length(_bit_rows(first, second)[-1], len(first))


def _common_places(first: Sequence[str], second: Sequence[str], *, late: bool) -> set[int]:
    """Return where in `first` a longest common subsequence is.

    Of several, take that whose words stand last in `first` (`late`), or last in `second`.
    """
    rows = _bit_rows(first, second)
    places: set[int] = set()
    at, other = len(first), len(second)
    while at and other:
        if first[at - 1] == second[other - 1]:
            places.add(at - 1)
            at, other = at - 1, other - 1
            continue
        without_first, without_second = _common_length(rows[other], at - 1), _common_length(rows[other - 1], at)
        if without_first > without_second or (without_first == without_second and not late):
            at -= 1
        else:
            other -= 1
    return places


def _common_length(row: int, size: int) -> int:
    """Return the length of the longest common subsequence with the first `size` tokens."""
    return size - (row & ((1 << size) - 1)).bit_count()


def _bit_rows(first: Sequence[str], second: Sequence[str]) -> list[int]:
    """Return the table of longest common subsequences, by sets of bits (Hyyrö 2004); a bit is 0 where the length
    grows."""
    places: dict[str, int] = {}
    for at, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << at
    full = (1 << len(first)) - 1
    rows = [full]
    for token in second:
        row = rows[-1]
        met = row & places.get(token, 0)
        rows.append(((row + met) | (row - met)) & full)
    return rows
