# SPDX-License-Identifier: Apache-2.0
"""Columns of text. Imports nothing, because the front pages of the command use it."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def print_table(rows: Sequence[Sequence[object]]) -> None:
    """Columns left-justified to their widest cell."""
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))] if rows else []
    for row in rows:
        line = "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write(line.rstrip() + "\n")
