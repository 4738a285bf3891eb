# SPDX-License-Identifier: Apache-2.0
"""Files cut into chunks, and segments put together again: nothing lost, nothing twice."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import StorageError
from newskills.train.data.reading import Chunk, line_number, lines_of, offset_after
from newskills.train.data.segments import read_bucket, write_segments


@given(
    st.lists(st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")), max_size=20),
    st.integers(1, 30),
    st.booleans(),
)
def test_each_line_is_in_one_chunk(lines: list[bytes], size: int, closed: bool) -> None:
    content = b"\n".join(lines) + (b"\n" if closed else b"")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in"
        path.write_bytes(content)
        found: list[Any] = []
        for number, start in enumerate(range(0, len(content), size)):
            end = min(len(content), start + size)
            found += lines_of(path, Chunk(number=number, file=0, start=start, end=end))
        assert b"".join(line for _, line in found) == content
        assert [content[at : at + len(line)] for at, line in found] == [line for _, line in found]
        assert [line_number(path, at) for at, _ in found] == list(range(1, len(found) + 1))
        assert [offset_after(path, n) for n in range(len(found))] == [at for at, _ in found]


@given(
    st.lists(st.lists(st.lists(st.binary(max_size=9), max_size=3), min_size=3, max_size=3), min_size=1, max_size=4)
)
def test_segments_of_all_files_make_a_bucket(files: list[list[list[bytes]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / str(number) for number in range(len(files))]
        for path, buckets in zip(paths, files, strict=True):
            write_segments(path, buckets)
        for bucket in range(3):
            assert read_bucket(paths, bucket) == b"".join(b"".join(buckets[bucket]) for buckets in files)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "no").write_text("a file")
    with pytest.raises(StorageError):
        write_segments(tmp_path / "no" / "file", [[b"x"]])
