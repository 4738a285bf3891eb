# SPDX-License-Identifier: Apache-2.0
"""How alike two short answers are: SQuAD (arXiv:1606.05250), MLQA (arXiv:1910.07475), DROP (arXiv:1903.00161), ANLS.

All run in time linear in the answer, but for ANLS, which is bounded by the length of the right answer.
"""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence

_PUNCTUATION = frozenset(string.punctuation)
_REMOVED = dict.fromkeys(map(ord, string.punctuation))
_ARTICLES = {
    "en": "a an the",
    "es": "un una unos unas el la los las",
    "de": "ein eine einen einem eines einer der die das den dem des",
    "vi": "của là cái chiếc những",
    "fr": "un une des le la les du de",
    "it": "un uno una il lo la i gli le",
    "pt": "um uma uns umas o a os as",
}
_ARTICLE = {code: re.compile(rf"\b(?:{words.replace(' ', '|')})\b") for code, words in _ARTICLES.items()}
_UNSPACED = frozenset({"zh", "ja", "th", "lo", "km", "my"})
_ARABIC_ARTICLE = "ال"
"""MLQA's script takes it out wherever it stands, within words too."""
_BETWEEN_WORDS = dict.fromkeys(map(ord, f"{string.punctuation}‘’´"), " ")
_BORDERS = re.compile(r" |-")
_MOST_SPANS = 64
_LINES = re.compile(r"[;\n]")
_EVERY_COMMA = re.compile(r"[;,\n]| and | & ")
_COMMA = re.compile(r"[;\n]| and | & |(?<!\d),|,(?!\d{3}(?!\d))")
"""Not that of 73,260."""


def squad_score(answer: str, gold: str, language: str = "en") -> tuple[float, float]:
    """Return (exact match, F1 of tokens), each 0–1; two texts without a token are the same."""
    return _token_score(squad_tokens(answer, language), squad_tokens(gold, language))


def trivia_score(answer: str, gold: str) -> tuple[float, float]:
    """Return `squad_score` as TriviaQA (arXiv:1705.03551) counts it: punctuation divides words."""
    first, second = (
        _ARTICLE["en"].sub(" ", text.lower().translate(_BETWEEN_WORDS)).split() for text in (answer, gold)
    )
    return _token_score(first, second)


def _token_score(first: Sequence[str], second: Sequence[str]) -> tuple[float, float]:
    if not first or not second:
        same = float(first == second)
        return same, same
    common = sum((Counter(first) & Counter(second)).values())
    return float(first == second), 2.0 * common / (len(first) + len(second))


def squad_tokens(text: str, language: str = "en") -> list[str]:
    """Return the words in lower case without punctuation and articles; for languages without blanks, characters."""
    code = language.lower().partition("-")[0].partition("_")[0]
    if code == "en":
        plain = text.lower().translate(_REMOVED)
    else:
        plain = "".join(char for char in text.lower() if not _is_punctuation(char))
    if code == "ar":
        plain = plain.replace(_ARABIC_ARTICLE, " ")
    if code in _UNSPACED:
        return _split_mixed_script(plain)
    if (article := _ARTICLE.get(code)) is not None:
        plain = article.sub(" ", plain)
    return plain.split()


def _is_punctuation(char: str) -> bool:
    return char in _PUNCTUATION or unicodedata.category(char).startswith("P")


def _split_mixed_script(text: str) -> list[str]:
    """Split into characters of their own, but keep words in Latin letters and digits."""
    return re.findall(r"[a-z0-9À-ɏ]+|\S", text)


def anls_score(answer: str, gold: str) -> float:
    """Return 1 − edit distance / longer length, or 0 where that is below one half (arXiv:1907.00490)."""
    first, second = (" ".join(text.lower().split()) for text in (answer, gold))
    longest, shortest = max(len(first), len(second)), min(len(first), len(second))
    if not longest:
        return 1.0
    if 2 * (longest - shortest) > longest:
        return 0.0
    share = edit_distance(first, second) / longest
    if share <= 0.5:
        return 1.0 - share
    return 0.0


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Count the insertions, deletions and substitutions of characters (or other items) that lead from one to the other.

    A column of the table at once, as bits of two numbers (Myers 1999; Hyyrö 2003, fig. 8).
    """
    if len(first) < len(second):
        first, second = second, first
    places: dict[str, int] = {}
    for at, item in enumerate(first):
        places[item] = places.get(item, 0) | 1 << at
    size = len(first)
    every, last = (1 << size) - 1, 1 << size >> 1
    more, less, distance = every, 0, size
    for item in second:
        equal = places.get(item, 0)
        vertical = equal | less
        horizontal = (((equal & more) + more) ^ more) | equal
        up, down = less | (every & ~(horizontal | more)), more & horizontal
        distance += bool(up & last) - bool(down & last)
        up, down = up << 1 | 1, down << 1
        more, less = (down | ~(vertical | up)) & every, up & vertical & every
    return distance


def split_spans(answer: str, wanted: Sequence[str]) -> list[list[str]]:
    """Return ways to read an answer as spans.

    It is read as one; where several are wanted, also cut at `;`, commas and "and".

    The last of them leaves whole what is wanted (`plant, and equipment`) and the commas within numbers (`73,260`).
    """
    if len(wanted) < 2:
        return [[answer]]
    cuts = [*(form.split(answer) for form in (_LINES, _EVERY_COMMA)), _cut_around(answer, wanted)]
    spans = [[span.strip() for span in cut if span.strip()][:_MOST_SPANS] for cut in cuts]
    return [[answer], *[several for several in spans if several]]


def _cut_around(answer: str, wanted: Sequence[str]) -> list[str]:
    """Cut outside numbers and outside those of `wanted` that hold what divides spans."""
    whole = sorted({span for span in wanted if _COMMA.search(span)}, key=len, reverse=True)[:_MOST_SPANS]
    kept = "|".join(map(re.escape, whole))
    if kept:
        separator = rf"(?<!\w)(?:{kept})(?!\w)|{_COMMA.pattern}"
    else:
        separator = _COMMA.pattern
    parts = re.compile(separator, re.IGNORECASE)
    spans, start = [], 0
    for match in parts.finditer(answer):
        if _COMMA.fullmatch(match[0]):
            spans.append(answer[start : match.start()])
            start = match.end()
    return [*spans, answer[start:]]


def drop_score(answer: Sequence[str], gold: Sequence[str]) -> tuple[float, float]:
    """Return (exact match, F1 over the best pairing of spans), each 0–1.

    F1 is rounded to two places, as the authors round it.
    """
    firsts, seconds = ([_drop_tokens(span) for span in spans] for spans in (answer, gold))
    plain, wanted = ([" ".join(tokens) for tokens in spans] for spans in (firsts, seconds))
    exact = float(len(plain) == len(wanted) and set(plain) == set(wanted))
    pairs = [[_bag_f1(set(first), set(second)) for first in firsts] for second in seconds]
    return exact, round(best_pairing(pairs) / max(len(firsts), len(seconds)), 2)


def _drop_tokens(text: str) -> list[str]:
    tokens = (_drop_token(token) for token in _BORDERS.split(text.lower()))
    return [part for token in tokens for part in _ARTICLE["en"].sub(" ", token).split()]


def _drop_token(token: str) -> str:
    plain = token if _is_number(token) else token.translate(_REMOVED)
    if _is_number(plain):
        return str(float(plain))
    return plain


def _is_number(token: str) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def _bag_f1(first: set[str], second: set[str]) -> float:
    """Return the F1 of two bags; 0 where the right one has numbers and none of them is in the other."""
    numbers = {token for token in second if _is_number(token)}
    if numbers and not numbers & first:
        return 0.0
    if not first or not second:
        return float(not first and not second)
    return 2.0 * len(first & second) / (len(first) + len(second))


def best_pairing(worth: Sequence[Sequence[float]]) -> float:
    """Return the largest sum over pairs (row, column), each used once at most."""
    return sum(worth[row][column] for row, column in assign_columns(worth).items())


def assign_columns(worth: Sequence[Sequence[float]]) -> dict[int, int]:
    """Return row → column, each used once at most, so that the sum is the largest.

    This is the Hungarian method, O(rows² · columns).
    """
    if len(worth) > len(worth[0]):
        return {row: column for column, row in assign_columns(list(zip(*worth, strict=True))).items()}
    rows, columns = len(worth), len(worth[0])
    by_row, by_column = [0.0] * (rows + 1), [0.0] * (columns + 1)
    taken = [0] * (columns + 1)
    for row in range(1, rows + 1):
        taken[0], at = row, 0
        least, came, visited = [math.inf] * (columns + 1), [0] * (columns + 1), [False] * (columns + 1)
        while taken[at]:
            visited[at], step, nearest = True, math.inf, 0
            for column in range(1, columns + 1):
                if visited[column]:
                    continue
                cost = -worth[taken[at] - 1][column - 1] - by_row[taken[at]] - by_column[column]
                if cost < least[column]:
                    least[column], came[column] = cost, at
                if least[column] < step:
                    step, nearest = least[column], column
            for column in range(columns + 1):
                if visited[column]:
                    by_row[taken[column]] += step
                    by_column[column] -= step
                else:
                    least[column] -= step
            at = nearest
        while at:
            taken[at] = taken[came[at]]
            at = came[at]
    return {taken[column] - 1: column - 1 for column in range(1, columns + 1) if taken[column]}
