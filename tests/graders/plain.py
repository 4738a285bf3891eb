# SPDX-License-Identifier: Apache-2.0
"""Graders that compute, for tests that call them as they are."""

from __future__ import annotations

from newskills.base.protocols import Grader
from newskills.base.records import Row
from newskills.graders import is_executing, make_grader


def plain_grader(name: str, config: Row) -> Grader:
    """The grader called `name`, which runs no code and asks no model."""
    grader = make_grader(name, config)
    assert not is_executing(grader)
    return grader  # type: ignore[return-value]
