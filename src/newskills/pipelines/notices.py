# SPDX-License-Identifier: Apache-2.0
"""What a person is told beside the results."""

from __future__ import annotations

import sys
from functools import cache


@cache
def notice(text: str) -> None:
    """Says it once, however often a command comes to the same conclusion."""
    sys.stderr.write(f"note: {text}\n")
