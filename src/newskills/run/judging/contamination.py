# SPDX-License-Identifier: Apache-2.0
"""What a contamination check has found."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from newskills.base.store import read_rows


def contamination_line(output: Path) -> str:
    """Return counts and share of contaminated problems; those without a verdict are in neither. Raises DataError."""
    counts = Counter(str(row.get("contaminated")) for row in read_rows(output))
    decided = counts["True"] + counts["False"]
    share = f" ({100 * counts['True'] / decided:.2f}%)" if decided else ""
    unknown = counts.total() - decided
    undecided = f", {unknown} without a verdict" if unknown else ""
    return f"{counts['True']} of {decided} contaminated{share}" + undecided
