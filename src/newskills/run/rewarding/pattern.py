# SPDX-License-Identifier: Apache-2.0
"""Whether a user's regular expression is found in a model's text: in a worker with a deadline, as it may take ages."""

from __future__ import annotations

import re
from collections.abc import Callable

from newskills.base.records import Row, Score

NAME = "pattern"


def make(config: Row) -> Callable[[Row], Score]:
    """Return what a worker pool runs; `config["pattern"]` is looked for in `text` of a record."""
    find = re.compile(config["pattern"]).search

    def look(record: Row) -> Score:
        there = find(record["text"]) is not None
        return Score(outcome="correct" if there else "wrong", fields={}, grader=NAME)

    return look
