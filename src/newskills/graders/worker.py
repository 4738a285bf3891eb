# SPDX-License-Identifier: Apache-2.0
"""What a worker pool runs to grade: `WorkerPool("newskills.graders.worker:make", {"name": …, "config": …})`."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from newskills.base.errors import ConfigError
from newskills.base.protocols import Grader
from newskills.base.records import Row, Score
from newskills.graders import is_executing, make_grader
from newskills.graders.reading.record_faults import grading_function


def make(config: Row) -> Callable[[Row], Score]:
    """Return the grading function of the grader `config["name"]` with the settings `config["config"]`.

    Raises ConfigError for a grader that runs code, UnknownNameError.
    """
    grader = make_grader(config["name"], config["config"])
    if is_executing(grader):
        raise ConfigError(f"Grader '{config['name']}' runs code; a worker process cannot do that for it.")
    return grading_function(cast(Grader, grader))


def preload(config: Row) -> None:
    """Import what the grader loads late, where it says so, before workers are forked."""
    warm = getattr(make_grader(config["name"], config["config"]), "preload", None)
    if warm is not None:
        warm()
