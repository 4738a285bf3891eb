# SPDX-License-Identifier: Apache-2.0
"""Second pass: a partition → its problems: duplicates removed, filters counted, solutions chosen, put into order.

All solutions of a problem, and hence all duplicates of a row, are in one partition, which fits into memory.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from newskills.base.store import atomic_write
from newskills.train.data.chain import active_filters
from newskills.train.data.chunks import REPEATED, LineRecord, decode_records
from newskills.train.data.job import BuildJob
from newskills.train.data.segments import read_bucket, write_segments

ENTRY = struct.Struct("<QQIQIII")
"""Two numbers to sort by, rank in its problem, place of its problem, characters of input and output, bytes of line."""
RANK = struct.Struct("<IQ")


class FilterCount(Struct, kw_only=True):
    """Rows that a step has removed, and changed."""

    removed: int = 0
    changed: int = 0


class PartitionCounts(Struct, kw_only=True):
    """`kept` rows of `problems`; `ranks`: how many problems have an n-th solution (n from 0)."""

    duplicates: int = 0
    filters: dict[str, FilterCount] = {}
    repeated_outputs: int = 0
    kept: int = 0
    problems: int = 0
    ranks: list[int] = []


class PartitionWorker:
    """Sorts partitions into buckets for the last pass."""

    def __init__(self, job: BuildJob, chunks: int) -> None:
        self._job = job
        self._files = [job.chunk_file(number) for number in range(chunks)]
        self._names = active_filters(job)
        self._key = job.config.random_seed.to_bytes(16, "little", signed=True)
        self._fair = job.config.downsampling_method == "fair"

    def __call__(self, number: int) -> PartitionCounts:
        """Write the partition's file, with fair sampling also `ranks-…`. Raises StorageError."""
        counts = PartitionCounts(filters={name: FilterCount() for name in (*self._names, CODE_TEXT)})
        groups: dict[bytes, list[LineRecord]] = {}
        for record in self._unique(read_bucket(self._files, number), counts):
            groups.setdefault(record.group, []).append(record)
        buckets: list[list[bytes]] = [[] for _ in range(self._job.partitions)]
        ranks: list[bytes] = []
        for group in groups.values():
            chosen = list(self._chosen(group, counts))
            counts.problems += bool(chosen)
            place = group[0].place
            for rank, record in enumerate(chosen):
                first, second = self._order(record.place, place)
                line = record.line
                head = ENTRY.pack(first, second, rank, place, record.input_chars, record.output_chars, len(line))
                buckets[self._bucket(first)] += (head, line)  # type: ignore[arg-type]
                if rank == len(counts.ranks):
                    counts.ranks.append(0)
                counts.ranks[rank] += 1
                if self._fair:
                    ranks.append(RANK.pack(rank, place))
        counts.kept = sum(counts.ranks)
        write_segments(self._job.partition_file(number), buckets)
        if self._fair:
            with atomic_write(self._job.ranks_file(number)) as file:
                file.writelines(ranks)
        return counts

    def _unique(self, data: bytes, counts: PartitionCounts) -> Iterator[LineRecord]:
        """Yield rows that all filters kept, without duplicates; what filters did is counted for the first of
        equals only."""
        seen: set[bytes] = set()
        deduplicate = self._job.config.deduplicate
        tallies = [counts.filters[name] for name in self._names]
        for record in decode_records(data):
            if deduplicate:
                if record.dropped == REPEATED or record.pair in seen:
                    counts.duplicates += 1
                    continue
                seen.add(record.pair)
            if record.changed:
                for number, tally in enumerate(tallies):
                    tally.changed += record.changed >> number & 1
            if record.dropped:
                tallies[record.dropped - 1].removed += 1
            else:
                yield record

    def _chosen(self, group: Sequence[LineRecord], counts: PartitionCounts) -> Iterator[LineRecord]:
        """Choose solutions of one problem by code and text, and none twice (filters may have made two equal)."""
        method = self._job.config.filters.code_text_filter
        kept = group if method is None else CHOICES[method](group)
        counts.filters[CODE_TEXT].removed += len(group) - len(kept)
        if self._job.config.output_key is None:
            yield from kept
            return
        outputs: set[bytes] = set()
        for record in kept:
            if record.final in outputs:
                counts.repeated_outputs += 1
                continue
            outputs.add(record.final)
            yield record

    def _order(self, place: int, first: int) -> tuple[int, int]:
        """Return the numbers that the row is sorted by: a random number that depends on the seed and its place, or its
        problem's place, then its place."""
        if not self._job.config.do_shuffle:
            return first, place
        drawn = hashlib.blake2b(place.to_bytes(8, "little"), digest_size=8, key=self._key).digest()
        return int.from_bytes(drawn, "little"), place

    def _bucket(self, first: int) -> int:
        whole = 1 << 64 if self._job.config.do_shuffle else max(1, self._job.total)
        return first * self._job.partitions // whole


CODE_TEXT = "code_text_filter"


def _with_code(group: Sequence[LineRecord]) -> list[LineRecord]:
    return [record for record in group if record.has_code]


def _without_code(group: Sequence[LineRecord]) -> list[LineRecord]:
    return [record for record in group if not record.has_code]


def _majority_code(group: Sequence[LineRecord]) -> Sequence[LineRecord]:
    code = _with_code(group)
    if len(code) > len(group) // 2:
        return code
    return [*code, *_without_code(group)]


def _majority_text(group: Sequence[LineRecord]) -> Sequence[LineRecord]:
    code = _with_code(group)
    if len(code) > len(group) // 2:
        return code
    return _without_code(group)


def _any_code(group: Sequence[LineRecord]) -> Sequence[LineRecord]:
    return _with_code(group) or _without_code(group)


CHOICES: dict[str, Callable[[Sequence[LineRecord]], Sequence[LineRecord]]] = {
    "all": _with_code,
    "majority_code": _majority_code,
    "majority_text": _majority_text,
    "any_code": _any_code,
}


def merge_counts(parts: Iterable[PartitionCounts]) -> PartitionCounts:
    """Return the sum of all parts."""
    total = PartitionCounts()
    ranks: Counter[int] = Counter()
    for part in parts:
        total.duplicates += part.duplicates
        total.repeated_outputs += part.repeated_outputs
        total.kept += part.kept
        total.problems += part.problems
        ranks.update(dict(enumerate(part.ranks)))
        for name, count in part.filters.items():
            sums = total.filters.setdefault(name, FilterCount())
            sums.removed += count.removed
            sums.changed += count.changed
    total.ranks = [ranks[rank] for rank in sorted(ranks)]
    return total
