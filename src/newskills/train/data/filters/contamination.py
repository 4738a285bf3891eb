# SPDX-License-Identifier: Apache-2.0
"""Filter of problems that an evaluation asks: those a check has found, and those that share words with a benchmark."""

from __future__ import annotations

import hashlib
from pathlib import Path

from msgspec import Struct

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.base.store import decode_row, open_for_reading
from newskills.train.data.filters.base import FilterVerdict
from newskills.train.data.overlap import OverlapIndex

CHECKED = "problem"


class RemoveContaminated(Struct, frozen=True, kw_only=True):
    """Drops a row whose `problem` is among `found` (digests), or overlaps with a benchmark's."""

    key: str
    found: frozenset[bytes] = frozenset()
    index: OverlapIndex | None = None
    name: str = "remove_contaminated"

    def apply(self, row: Row) -> FilterVerdict:
        text = str(row.get(CHECKED, row[self.key]))
        if self.found and text_digest(text) in self.found:
            return FilterVerdict.DROPPED
        if self.index is not None and self.index.holds(text):
            return FilterVerdict.DROPPED
        return FilterVerdict.KEPT


def read_contaminated(path: Path) -> tuple[frozenset[bytes], int]:
    """Read (digests of the contaminated problems, how many have no verdict). Raises DataError."""
    problems: set[bytes] = set()
    unknown = 0
    with open_for_reading(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            row = decode_row(line, path, number)
            if "contaminated" not in row or not isinstance(row.get(CHECKED), str):
                raise DataError(
                    f"{path}, line {number}: expected the fields '{CHECKED}' and 'contaminated'; the fields "
                    f"are {', '.join(sorted(row)) or 'none'}.",
                    hint="ns generate --generation_type=check_contamination writes such a file.",
                )
            if row["contaminated"]:
                problems.add(text_digest(row[CHECKED]))
            unknown += row["contaminated"] is None
    return frozenset(problems), unknown


def text_digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
