# SPDX-License-Identifier: Apache-2.0
"""The most similar texts of one data set for each text of another, by the words and pairs of words that they share.

Cosine of TF-IDF vectors (Salton and Buckley, "Term-weighting approaches in automatic text retrieval", 1988): weight
(1 + log tf) · log(1 + N / df) over words and pairs of neighbours; letter case and punctuation do not count, and in
scripts without spaces each character is a word. It finds what was copied, cut, or reworded in part. A translation, or a
text that says the same in other words only, is found by `SimilarMeanings`, which needs a model of embeddings.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from newskills.base.errors import DataError
from newskills.base.reading.row_files import place_in, row_lines
from newskills.base.records import Row
from newskills.base.store import decode_row, open_for_reading

if TYPE_CHECKING:
    import numpy as np

Embed = Callable[[Sequence[str]], "np.ndarray[Any, np.dtype[np.float32]]"]
"""Texts → vectors of length 1."""
QUERIES_PER_LOOKUP = 2048
"""Texts that are looked up together."""
SIMILAR, SIMILARITIES = "similar_items", "similarities"
COMMON, FEW = 0.1, 100
"""A word in more than this share of the texts, and in more than so many, says nothing about any of them."""
_WORD = re.compile(r"[぀-鿿가-힯]|[^\W぀-鿿가-힯]+")


class TextIndex(Protocol):
    """Texts to look others up among, each of them once."""

    texts: list[str]

    def best(self, queries: Sequence[str], count: int) -> list[list[tuple[str, float]]]:
        """Return, for each query, at most `count` texts and their similarity, best first. Ties by position."""
        ...


class SimilarMeanings:
    """An index by the cosine of embeddings: 4 bytes for each text and dimension."""

    def __init__(self, texts: Iterable[str], embed: Embed) -> None:
        self.texts = list(dict.fromkeys(texts))
        self._embed = embed
        self._vectors = embed(self.texts) if self.texts else None

    def best(self, queries: Sequence[str], count: int) -> list[list[tuple[str, float]]]:
        import numpy as np

        assert self._vectors is not None
        scores = self._embed(queries) @ self._vectors.T
        order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
        return [
            [(self.texts[at], round(float(row[at]), 4)) for at in best]
            for row, best in zip(scores, order, strict=True)
        ]


class SimilarTexts:
    """An index over `texts`, each of them once; a query costs the postings of its own words."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = list(dict.fromkeys(texts))
        words = [_split_words(text) for text in self.texts]
        self._same: dict[tuple[str, ...], list[int]] = {}
        for at, words_of_text in enumerate(words):
            self._same.setdefault(tuple(words_of_text), []).append(at)
        counts = [_count_terms(words_of_text) for words_of_text in words]
        documents = Counter(itertools.chain.from_iterable(counts))
        size = len(self.texts)
        most = max(FEW, COMMON * size)
        self._rarest = math.log(1 + size)
        self._weights = {t: math.log(1 + size / df) if df <= most else 0.0 for t, df in documents.items()}
        self._postings: dict[str, list[tuple[int, float]]] = {}
        for at, count in enumerate(counts):
            for term, weight in self._vector(count):
                self._postings.setdefault(term, []).append((at, weight))

    def best(self, queries: Sequence[str], count: int) -> list[list[tuple[str, float]]]:
        """Return the most similar texts with scores in 0–1; texts without a common term are omitted."""
        return [self._best(query, count) for query in queries]

    def _best(self, query: str, count: int) -> list[tuple[str, float]]:
        words = _split_words(query)
        scores: dict[int, float] = {}
        for term, weight in self._vector(_count_terms(words)):
            for at, other in self._postings.get(term, ()):
                scores[at] = scores.get(at, 0.0) + weight * other
        scores |= dict.fromkeys(self._same.get(tuple(words), ()), 1.0)
        best = heapq.nsmallest(count, scores.items(), key=lambda item: (-item[1], item[0]))
        return [(self.texts[at], round(min(1.0, score), 4)) for at, score in best]

    def _vector(self, count: Counter[str]) -> list[tuple[str, float]]:
        """Return the weighted vector of length 1. Words that no text of the index has make it less similar to
        all."""
        weighted = [(t, (1 + math.log(tf)) * self._weights.get(t, self._rarest)) for t, tf in count.items()]
        length = math.sqrt(sum(weight * weight for _, weight in weighted))
        return [(term, weight / length) for term, weight in weighted if weight]


def retrieve_similar(
    retrieve_from: Sequence[Path],
    compare_to: Sequence[Path],
    *,
    key: str,
    top_k: int,
    index_of: Callable[[Iterable[str]], TextIndex] = SimilarTexts,
) -> Iterator[Row]:
    """Yield `{key, similar_items, similarities}` for each distinct text `key` of `compare_to`, with items of
    `retrieve_from`.

    Raises DataError for a row without the text, and where there is nothing to retrieve from.
    """
    index = index_of(text for path in retrieve_from for text in _file_texts(path, key))
    if not index.texts:
        raise DataError(f"{', '.join(map(str, retrieve_from))}: there are no rows to retrieve from.")
    distinct = _distinct_texts(itertools.chain.from_iterable(_file_texts(path, key) for path in compare_to))
    while queries := list(itertools.islice(distinct, QUERIES_PER_LOOKUP)):
        for text, best in zip(queries, index.best(queries, top_k), strict=True):
            yield {key: text, SIMILAR: [item for item, _ in best], SIMILARITIES: [score for _, score in best]}


def _distinct_texts(texts: Iterable[str]) -> Iterator[str]:
    """Yield each text once; 12 bytes of it are kept."""
    seen: set[bytes] = set()
    for text in texts:
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        if digest not in seen:
            seen.add(digest)
            yield text


def _file_texts(path: Path, key: str) -> Iterator[str]:
    with open_for_reading(path) as file:
        for place, line in row_lines(file, path):
            if not line.strip():
                continue
            text = decode_row(line, path, place).get(key)
            if not isinstance(text, str):
                raise DataError(f"{place_in(path, place)}: the field '{key}' is missing or not a text.")
            yield text


def _split_words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _count_terms(words: Sequence[str]) -> Counter[str]:
    """Count words and pairs of neighbouring words."""
    return Counter(itertools.chain(words, (f"{a} {b}" for a, b in itertools.pairwise(words))))
