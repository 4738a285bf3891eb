# SPDX-License-Identifier: Apache-2.0
"""Last pass: rows in their final order, as many as are wanted."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from newskills.train.data.job import BuildJob
from newskills.train.data.partitions import ENTRY, RANK
from newskills.train.data.segments import read_bucket


class LineBatch(NamedTuple):
    """Some lines to write, in order; lengths of their texts in characters."""

    lines: Sequence[memoryview]
    input_chars: Sequence[int]
    output_chars: Sequence[int]


class SamplingCut(NamedTuple):
    """Rows of a lower rank than `rank` are taken, and of that rank those whose problem comes no later than `place`."""

    rank: int
    place: int


def sampled_batches(job: BuildJob, ranks: Sequence[int]) -> Iterator[LineBatch]:
    """Yield the rows of the data set, in batches. `ranks`: how many problems have an n-th solution."""
    wanted = job.config.num_output_samples
    cut = None
    if job.config.downsampling_method == "fair" and wanted is not None and wanted < sum(ranks):
        cut = _fair_cut(job, ranks, wanted)
    left = wanted if wanted is not None else sum(ranks)
    for bucket in range(job.partitions):
        if not left:
            return
        batch = _sorted_batch(job, bucket, cut, left)
        left -= len(batch.lines)
        yield batch


def _sorted_batch(job: BuildJob, bucket: int, cut: SamplingCut | None, most: int) -> LineBatch:
    """Return at most the first `most` rows of a bucket, sorted."""
    data = read_bucket((job.partition_file(number) for number in range(job.partitions)), bucket)
    rows: list[tuple[int, int, int, int, int, int]] = []
    at, size, unpack = 0, len(data), ENTRY.unpack_from
    while at < size:
        first, second, rank, place, question_length, answer_length, length = unpack(data, at)
        at += ENTRY.size
        if cut is None or (rank, place) <= cut:
            rows.append((first, second, at, at + length, question_length, answer_length))
        at += length
    rows.sort()
    del rows[most:]
    view = memoryview(data)
    return LineBatch([view[row[2] : row[3]] for row in rows], [row[4] for row in rows], [row[5] for row in rows])


def _fair_cut(job: BuildJob, ranks: Sequence[int], wanted: int) -> SamplingCut:
    """Round robin: first solutions of all problems, then second ones, …; within a round in order of appearance.

    8 bytes of memory for each problem that has a solution of the round that is not finished.
    """
    rank, left = 0, wanted
    while ranks[rank] < left:
        left -= ranks[rank]
        rank += 1
    places = array("Q")
    for number in range(job.partitions):
        data = job.ranks_file(number).read_bytes()
        places.extend(place for row_rank, place in RANK.iter_unpack(data) if row_rank == rank)
    return SamplingCut(rank, sorted(places)[left - 1])
