# SPDX-License-Identifier: Apache-2.0
"""The most similar texts of one data set for each text of another, by the words and pairs of words that they share.

Cosine of TF-IDF vectors (Salton and Buckley, "Term-weighting approaches in automatic text retrieval", 1988): weight
(1 + log tf) · log(1 + N / df) over words and pairs of neighbours; letter case and punctuation do not count, and in
scripts without spaces each character is a word. It finds what was copied, cut, or reworded in part. It does not find a
translation, or a text that says the same in other words only.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import decode_row, open_for_reading

SIMILAR, SIMILARITIES = "similar_items", "similarities"
COMMON, FEW = 0.1, 100
"""A word in more than this share of the texts, and in more than so many, says nothing about any of them."""
_WORD = re.compile(r"[぀-鿿가-힯]|[^\W぀-鿿가-힯]+")


class SimilarTexts:
    """An index over `texts`, each of them once; a query costs the postings of its own words."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = list(dict.fromkeys(texts))
        words = [_words(text) for text in self.texts]
        self._same: dict[tuple[str, ...], list[int]] = {}
        for at, said in enumerate(words):
            self._same.setdefault(tuple(said), []).append(at)
        counts = [_terms(said) for said in words]
        documents = Counter(itertools.chain.from_iterable(counts))
        size = len(self.texts)
        most = max(FEW, COMMON * size)
        self._rarest = math.log(1 + size)
        self._weights = {t: math.log(1 + size / df) if df <= most else 0.0 for t, df in documents.items()}
        self._postings: dict[str, list[tuple[int, float]]] = {}
        for at, count in enumerate(counts):
            for term, weight in self._vector(count):
                self._postings.setdefault(term, []).append((at, weight))

    def best(self, query: str, count: int) -> list[tuple[str, float]]:
        """At most `count` texts and their similarity (0–1), best first; none that shares nothing. Ties by position."""
        words = _words(query)
        scores: dict[int, float] = {}
        for term, weight in self._vector(_terms(words)):
            for at, other in self._postings.get(term, ()):
                scores[at] = scores.get(at, 0.0) + weight * other
        scores |= dict.fromkeys(self._same.get(tuple(words), ()), 1.0)
        best = heapq.nsmallest(count, scores.items(), key=lambda item: (-item[1], item[0]))
        return [(self.texts[at], round(min(1.0, score), 4)) for at, score in best]

    def _vector(self, count: Counter[str]) -> list[tuple[str, float]]:
        """Of length 1. Words that no text of the index has make it less similar to all."""
        weighted = [(t, (1 + math.log(tf)) * self._weights.get(t, self._rarest)) for t, tf in count.items()]
        length = math.sqrt(sum(weight * weight for _, weight in weighted))
        return [(term, weight / length) for term, weight in weighted if weight]


def retrieve_similar(
    retrieve_from: Sequence[Path], compare_to: Sequence[Path], *, key: str, top_k: int
) -> Iterator[Row]:
    """For each distinct text `key` of `compare_to`: `{key, similar_items, similarities}`, of `retrieve_from`.

    Raises DataError for a row without the text, and where there is nothing to retrieve from.
    """
    index = SimilarTexts(text for path in retrieve_from for text in _texts(path, key))
    if not index.texts:
        raise DataError(f"{', '.join(map(str, retrieve_from))}: there are no rows to retrieve from.")
    seen: set[bytes] = set()
    for text in itertools.chain.from_iterable(_texts(path, key) for path in compare_to):
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        if digest in seen:
            continue
        seen.add(digest)
        best = index.best(text, top_k)
        yield {key: text, SIMILAR: [item for item, _ in best], SIMILARITIES: [score for _, score in best]}


def _texts(path: Path, key: str) -> Iterator[str]:
    with open_for_reading(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            text = decode_row(line, path, number).get(key)
            if not isinstance(text, str):
                raise DataError(f"{path}, line {number}: the field '{key}' is missing or no text.")
            yield text


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _terms(words: Sequence[str]) -> Counter[str]:
    """Words, and pairs of neighbours."""
    return Counter(itertools.chain(words, (f"{a} {b}" for a, b in itertools.pairwise(words))))
