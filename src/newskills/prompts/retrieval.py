# SPDX-License-Identifier: Apache-2.0
"""Similar examples by BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009).

The Okapi form over whitespace tokens: k1 = 1.5, b = 0.75, and terms found in more than half of the documents get a
quarter of the mean inverse document frequency in place of a negative one.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.prompts.schema import NO_LIMIT, FewShotConfig

K1 = 1.5
B = 0.75
MIN_IDF = 0.25
MAX_ENTRIES = 1_000_000


class BM25:
    """An inverted index over `documents`; a query costs the postings of its own terms."""

    def __init__(self, documents: Sequence[str]) -> None:
        self._size = len(documents)
        counts = [Counter(document.split()) for document in documents]
        lengths = [sum(count.values()) for count in counts]
        mean_length = sum(lengths) / max(1, len(lengths)) or 1.0
        postings: dict[str, list[tuple[int, float]]] = {}
        for at, (count, length) in enumerate(zip(counts, lengths, strict=True)):
            norm = K1 * (1 - B + B * length / mean_length)
            for term, frequency in count.items():
                postings.setdefault(term, []).append((at, frequency * (K1 + 1) / (frequency + norm)))
        self._idf = _inverse_frequencies(
            {term: len(documents) for term, documents in postings.items()}, self._size
        )
        self._postings = postings

    def best(self, query: str, count: int) -> list[int]:
        """Return the positions of the `count` most similar documents, best first; ties by position."""
        scores = [0.0] * self._size
        for term, repeated in Counter(query.split()).items():
            idf = self._idf.get(term, 0.0) * repeated
            if idf:
                for at, weight in self._postings[term]:
                    scores[at] -= idf * weight
        return [at for _, at in heapq.nsmallest(count, zip(scores, range(self._size), strict=True))]


class Retriever:
    """Examples similar to a query, as `FewShotConfig` asks. Raises ConfigError, DataError on loading."""

    def __init__(self, config: FewShotConfig) -> None:
        assert config.retrieval_file is not None
        assert config.retrieval_field is not None
        self._config = config
        self._field = config.retrieval_field
        path = Path(config.retrieval_file).expanduser()
        if not path.is_file():
            raise ConfigError(f"few_shot_examples.retrieval_file: there is no file {path}.")
        stat = path.stat()
        self._path = path
        self._entries, self._index, self.digest = _load_index(
            str(path.resolve()), stat.st_size, stat.st_mtime_ns, self._field
        )

    def examples(self, query: str) -> list[Row]:
        """Return the most similar examples, best last; an entry equal to the query itself is never shown first.

        A shuffle, where asked for, depends on the query only.
        """
        config = self._config
        entries = [self._entries[at] for at in self._index.best(query, config.retrieved_entries)]
        entries = list(itertools.dropwhile(lambda entry: entry[self._field] == query, entries))
        if config.max_retrieved_chars < NO_LIMIT:
            entries = [entry for entry in entries if self._limited_length(entry) <= config.max_retrieved_chars]
        shown = entries[: config.retrieved_few_shots][::-1]
        if config.randomize_retrieved_entries:
            random.Random(query).shuffle(shown)  # noqa: S311 - an order, not a secret
        return shown

    def _limited_length(self, entry: Row) -> int:
        field = self._config.max_retrieved_chars_field
        if field not in entry:
            raise DataError(
                f"{self._path}: an entry has no field '{field}', whose length max_retrieved_chars limits."
            )
        return len(str(entry[field]))


@lru_cache(maxsize=4)
def _load_index(name: str, size: int, changed: int, field: str) -> tuple[list[Row], BM25, str]:
    """Load entries and their index; `size` and `changed` only tell versions of the file apart, the digest is of
    its content."""
    path = Path(name)
    entries = list(itertools.islice(read_rows(path), MAX_ENTRIES + 1))
    if len(entries) > MAX_ENTRIES:
        raise DataError(f"{path} has more than {MAX_ENTRIES:,} entries; examples are searched in memory.")
    if not entries:
        raise DataError(f"{path} is empty; there are no examples to search.")
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry.get(field), str):
            raise DataError(f"{path}, entry {number}: the field '{field}' is missing or not text.")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return entries, BM25([entry[field] for entry in entries]), digest


def _inverse_frequencies(documents_with: dict[str, int], size: int) -> dict[str, float]:
    idf = {term: math.log(size - n + 0.5) - math.log(n + 0.5) for term, n in documents_with.items()}
    floor = MIN_IDF * sum(idf.values()) / max(1, len(idf))
    return {term: value if value >= 0 else floor for term, value in idf.items()}
