# SPDX-License-Identifier: Apache-2.0
"""What a worker makes of a grader's name, and what is loaded before workers are forked."""

from __future__ import annotations

import pytest

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.base.records import Row, Score
from newskills.graders.worker import make, preload

WARMED: list[str] = []


class Cold:
    """Loads nothing late."""

    name, version = "cold", "1"

    def grade(self, record: Row) -> Score:
        return Score(outcome="correct", fields={}, grader="cold@1")


class Warm(Cold):
    """Loads something late."""

    def preload(self) -> None:
        WARMED.append(self.name)


def config(name: str) -> Row:
    return {"name": f"{__name__}::{name}" if name[0].isupper() else name, "config": {}}


def test_what_loads_late_is_loaded_before_the_fork() -> None:
    WARMED.clear()
    preload(config("Cold"))
    assert WARMED == []
    preload(config("Warm"))
    assert WARMED == ["cold"]


def test_a_worker_grades_and_runs_no_code() -> None:
    assert make(config("Cold"))({"generation": "x"}).outcome == "correct"
    with pytest.raises(ConfigError, match="'code_tests' runs code; a worker process cannot"):
        make(config("code_tests"))
    with pytest.raises(UnknownNameError):
        make(config("exactt"))
