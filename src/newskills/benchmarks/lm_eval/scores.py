# SPDX-License-Identifier: Apache-2.0
"""The score of a group of lm_eval, by the package's own sums, from the figures of its tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from newskills.base.lm_eval.figures import FIGURES, column_of, is_share
from newskills.base.records import Row
from newskills.benchmarks.scores import headline_mode


def group_score(group: Any, members: Mapping[str, Mapping[str, Row]]) -> dict[str, Row]:
    """Return the figures of a group and of the groups in it, which are modes of their own.

    The exact figures are in `lm_eval`; those beside it are percentages where they are shares.
    """
    tasks = {name: _task_figures(modes) for name, modes in members.items()}
    modes: dict[str, Row] = {}
    for part in [group, *group.get_all_groups()]:
        exact = {
            key: float(value)  # some are numbers of numpy
            for key, value in part.aggregate(tasks).items()
            if "," in key and isinstance(value, int | float)
        }
        if exact or part is group:
            modes["score" if part is group else part.name] = _mode_scores(exact, members)
    return modes


def _mode_scores(exact: Mapping[str, float], members: Mapping[str, Mapping[str, Row]]) -> Row:
    filters = {key.partition(",")[2] for key in exact}
    row: Row = {}
    for key, value in exact.items():
        name, _, chosen = key.partition(",")
        if not name.endswith("_stderr"):
            share = all(is_share(headline_mode(modes)[1], key) for modes in members.values())
            row[column_of(name, chosen, len(filters))] = value * (100 if share else 1)
    return row | {FIGURES: {"figures": dict(exact)}}


def _task_figures(modes: Mapping[str, Row]) -> Row:
    """Return the figures of a task as lm_eval has them; those that were moved, to see what that moves, as moved."""
    row = headline_mode(modes)[1]
    exact = dict(row[FIGURES]["figures"])
    for key, column in row[FIGURES]["columns"].items():
        scale = 100 if is_share(row, key) else 1
        shown = row.get(column)
        if isinstance(shown, int | float) and not math.isclose(
            shown, exact[key] * scale, rel_tol=1e-9, abs_tol=1e-12
        ):
            exact[key] = shown / scale
    return {**exact, "sample_len": row[FIGURES]["sample_len"]}
