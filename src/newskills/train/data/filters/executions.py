# SPDX-License-Identifier: Apache-2.0
"""How often a solution was allowed to run code, from the remarks in its outputs."""

from __future__ import annotations

import re

from msgspec import Struct

from newskills.base.records import Row
from newskills.train.data.filters.base import FilterVerdict

_LEFT = re.compile(r"Remaining code executions: (\d{1,9})")
_USED_UP = "run out of code executions"
TOTAL = "total_code_executions"


class AddCodeExecutionCounts(Struct, frozen=True, kw_only=True):
    """Adds `total_code_executions`: one more than the first remark leaves, 1 where none were left, else 0."""

    key: str
    name: str = "add_code_execution_counts"

    def apply(self, row: Row) -> FilterVerdict:
        text = row[self.key]
        if match := _LEFT.search(text):
            row[TOTAL] = int(match[1]) + 1
        else:
            row[TOTAL] = int(_USED_UP in text)
        return FilterVerdict.CHANGED
