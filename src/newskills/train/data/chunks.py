# SPDX-License-Identifier: Apache-2.0
"""First pass: a chunk of input → its rows, filtered and written out, sorted into partitions by their problem.

What a chunk becomes depends on its bytes alone, so that neither the number of workers nor a second attempt changes
anything. Duplicates cannot be known yet but those within the chunk, so that counting is left to the second pass.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from msgspec import Struct

from newskills.base.protocols import Tokenizer
from newskills.base.records import Row
from newskills.prompts.code_tags import code_tags
from newskills.train.data.chain import make_chain
from newskills.train.data.filters.base import FilterVerdict
from newskills.train.data.job import BuildJob
from newskills.train.data.outputs import Formatter
from newskills.train.data.reading import Chunk, ChunkReader
from newskills.train.data.segments import write_segments

HEAD = struct.Struct("<Q16s16s16sBBIIII")
REPEATED = 255
"""In the place of the filter that dropped the row: the chunk has it before."""


class LineRecord(NamedTuple):
    """`place`: of the line among all inputs; `group`, `pair`, `final`: digests of problem, problem with solution before
    and after the filters; `dropped`: 1-based filter, 0 = none; `has_code`; `changed`: bit for each filter."""

    place: int
    group: bytes
    pair: bytes
    final: bytes
    dropped: int
    has_code: int
    changed: int
    input_chars: int
    output_chars: int
    line: bytes | memoryview


class ChunkCounts(Struct, kw_only=True):
    """`seen` rows, and those left out before the chain, by reason."""

    seen: int = 0
    left_out: dict[str, int] = {}


class ChunkWorker:
    """Reads chunks. Making one opens what filters and prompt need, raising as they do."""

    def __init__(self, job: BuildJob) -> None:
        config = job.config
        self._job = job
        self._input_key, self._output_key = config.input_key, config.output_key or ""
        tokens = _lazy_tokenizer(config.tokenizer)
        self._chain = make_chain(job, tokens)
        self._formatter = Formatter(job, tokens)
        if config.filters.code_text_filter and config.code_tags:
            self._code = code_tags(config.code_tags).begin
        else:
            self._code = ""

    def __call__(self, chunk: Chunk) -> ChunkCounts:
        """Write the chunk's file. Raises DataError, StorageError."""
        prompt = self._formatter.prompt
        reader = ChunkReader(self._job, frozenset(prompt.fields) if prompt is not None else frozenset())
        buckets: list[list[bytes]] = [[] for _ in range(self._job.partitions)]
        base, count = self._job.inputs[chunk.file].base, self._job.partitions
        seen_pairs: set[bytes] = set()
        unique = self._job.config.deduplicate
        for offset, row in reader.rows(chunk):
            group, pair = self._digests(row)
            bucket = buckets[int.from_bytes(group[:4], "little") % count]
            if pair in seen_pairs and unique:
                bucket.append(HEAD.pack(base + offset, group, pair, pair, REPEATED, 0, 0, 0, 0, 0))
                continue
            seen_pairs.add(pair)
            bucket += self._process_row(row, base + offset, group, pair)
        write_segments(self._job.chunk_file(chunk.number), buckets)
        return ChunkCounts(seen=reader.seen, left_out=dict(reader.left_out))

    def _digests(self, row: Row) -> tuple[bytes, bytes]:
        """Return (digest of the problem, digest of problem and solution)."""
        digest = hashlib.blake2b(row[self._input_key].encode("utf-8", "surrogatepass"), digest_size=16)
        group = digest.digest()
        if not self._output_key:
            return group, group
        digest.update(b"\0" + row[self._output_key].encode("utf-8", "surrogatepass"))
        return group, digest.digest()

    def _process_row(self, row: Row, place: int, group: bytes, pair: bytes) -> tuple[bytes, ...]:
        changed = 0
        before = row[self._output_key] if self._output_key else ""
        for number, step in enumerate(self._chain):
            verdict = step.apply(row)
            if verdict is FilterVerdict.DROPPED:
                return (HEAD.pack(place, group, pair, pair, number + 1, 0, changed, 0, 0, 0),)
            if verdict is FilterVerdict.CHANGED:
                changed |= 1 << number
        final = self._digests(row)[1] if changed else pair
        has_code = int(bool(self._code) and self._code in row[self._output_key])
        line, question_length, answer_length = self._formatter.line(row, before)
        return HEAD.pack(
            place, group, pair, final, 0, has_code, changed, question_length, answer_length, len(line)
        ), line


def decode_records(data: bytes) -> Iterator[LineRecord]:
    """Yield the records that `ChunkWorker` wrote; lines are views into `data`."""
    view = memoryview(data)
    at, end = 0, len(data)
    while at < end:
        head = HEAD.unpack_from(data, at)
        at += HEAD.size
        length = head[-1]
        yield LineRecord(*head[:-1], view[at : at + length])  # type: ignore[call-arg]
        at += length


def _lazy_tokenizer(name: str | None) -> Callable[[], Tokenizer]:
    """Return a function that opens the tokenizer when first called, once."""

    @cache
    def tokenizer() -> Tokenizer:
        from newskills.models.tokenizer import HFTokenizer

        assert name is not None, "settings were checked"
        return HFTokenizer(name)

    return tokenizer
