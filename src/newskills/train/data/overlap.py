# SPDX-License-Identifier: Apache-2.0
"""Do two problems share their words? Sequences of `n` words, as in Brown et al., "Language Models are Few-Shot
Learners" (2020), appendix C, but a share of them must agree, since problems of one kind have phrases in common.

A text overlaps with a benchmark's problem if at least `share` of the sequences of the shorter of both are in the
other. Case, punctuation and spaces do not count. Texts of at most 2n words must agree as a whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from msgspec import Struct

from newskills.base.store import read_rows

NGRAM, SHARE = 5, 0.5
_MOST_ITEMS = 16
"""A phrase of more problems than these tells nothing about any of the others."""
_WORD = re.compile(r"[぀-鿿가-힯]|[^\W_぀-鿿가-힯]+")


class Overlap(Struct, frozen=True, kw_only=True):
    """Problems of benchmarks to keep away from: JSONL files of `{"text": …}`, and when two are the same."""

    files: tuple[str, ...] = ()
    ngram: int = NGRAM
    share: float = SHARE


class OverlapIndex:
    """Looks texts up among the problems of benchmarks. About 200 bytes for each word of them."""

    def __init__(self, texts: Iterable[str], *, ngram: int = NGRAM, share: float = SHARE) -> None:
        self._ngram, self._share = ngram, share
        self._items: dict[int, list[int]] = {}
        self._sizes: list[int] = []
        self._whole: set[int] = set()
        for text in texts:
            self._add(_split_words(text))

    def holds(self, text: str) -> bool:
        """Return whether some problem of the index is (nearly) this one."""
        words = _split_words(text)
        if hash(tuple(words)) in self._whole:
            return True
        if len(words) <= 2 * self._ngram:
            return False
        grams = self._grams(words)
        items_by_gram = self._items
        counts = Counter(chain.from_iterable(items_by_gram[gram] for gram in grams & items_by_gram.keys()))
        return any(n >= self._share * min(len(grams), self._sizes[item]) for item, n in counts.items())

    def _add(self, words: list[str]) -> None:
        whole = hash(tuple(words))
        if not words or whole in self._whole:
            return
        self._whole.add(whole)
        grams = self._grams(words) if len(words) > 2 * self._ngram else set()
        item = len(self._sizes)
        self._sizes.append(len(grams))
        for gram in grams:
            items = self._items.setdefault(gram, [])
            if len(items) < _MOST_ITEMS:
                items.append(item)

    def _grams(self, words: list[str]) -> set[int]:
        """Return hashes of all n-grams; the words' own hashes are combined, so that no text is put together."""
        row = [hash(word) for word in words]
        width = 1
        while width * 2 <= self._ngram:
            row = [hash((a, row[at + width])) for at, a in enumerate(row[: len(row) - width])]
            width *= 2
        if rest := self._ngram - width:
            row = [hash((a, row[at + rest])) for at, a in enumerate(row[: len(row) - rest])]
        return set(row)


def read_index(overlap: Overlap) -> OverlapIndex | None:
    """Read the index of overlaps; None where there are no files. Raises DataError."""
    if not overlap.files:
        return None
    texts = (str(row["text"]) for name in overlap.files for row in read_rows(Path(name)))
    return OverlapIndex(texts, ngram=overlap.ngram, share=overlap.share)


def _split_words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
