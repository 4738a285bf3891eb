# SPDX-License-Identifier: Apache-2.0
"""Rows of benchmarks for new recordings, out of the offline mirror."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from newskills.base.records import Row


def mirrored(pattern: str) -> Iterator[Row]:
    """Rows of the JSON-lines files below NEWSKILLS_MIRROR that match `pattern`, by file name."""
    for path in sorted(Path(os.environ["NEWSKILLS_MIRROR"]).glob(pattern)):
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())
