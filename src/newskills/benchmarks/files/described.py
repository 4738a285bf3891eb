# SPDX-License-Identifier: Apache-2.0
"""Benchmarks that a file describes or is: what else is to be known of them."""

from __future__ import annotations

import msgspec

from newskills.base.benchmark import Benchmark
from newskills.benchmarks.files.rows import RowRules


class DescribedBenchmark(Benchmark, frozen=True, kw_only=True):
    """A benchmark without Python.

    home      folder in which relative paths of its sources begin
    place     its folder below the data directory, with dots between the steps
    guesses   what was seen from the data instead of said by the user
    """

    home: str
    place: str
    guesses: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether all rows come from files of this machine, so that preparing them needs no network."""
        return all(source.path for source in self.sources)

    def settings(self) -> bytes:
        """Return what of the description decides on the prepared rows."""
        assert isinstance(self.row, RowRules), "made by files.load"
        return msgspec.json.encode([self.row, self.sources], order="deterministic")
