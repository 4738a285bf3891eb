# SPDX-License-Identifier: Apache-2.0
"""Figures that environments of other projects make of a whole evaluation, beside ours."""

from __future__ import annotations

from collections.abc import Sequence

from newskills.base import aio
from newskills.base.callbacks import PrintLine
from newskills.base.errors import NewskillsError
from newskills.base.protocols import Aggregates
from newskills.base.store import read_rows, write_json
from newskills.run.planning.spec import Unit
from newskills.run.reporting.results import output_files
from newskills.solve import SOLVERS

FIGURES_FILE = "environment_metrics.json"


def say_environment_figures(units: Sequence[Unit], say: PrintLine) -> None:
    """Ask the environments of finished units for their figures, write them beside the records, and tell the main ones.

    An environment that does not answer takes nothing from the evaluation. Raises StorageError.
    """
    for name, unit in {unit.name: unit for unit in units}.items():
        config = unit.config
        solver = SOLVERS.get(config.selected_by or config.solved_by)
        if not isinstance(solver, Aggregates):
            continue
        folder = unit.merged.parent
        seeds = [list(read_rows(path)) for path in output_files(folder)]
        try:
            figures, shown = aio.run(lambda seeds=seeds, solver=solver: solver.aggregate(seeds))  # type: ignore[misc]
        except NewskillsError as error:
            say(f"note: {name}: the environment gave no figures of its own: {error}")
            continue
        write_json(folder / FIGURES_FILE, figures)
        words = ", ".join(f"{figure} {_short_value(value)}" for figure, value in shown.items())
        say(f"{name}, by its environment: {words or 'no figures'} ({folder / FIGURES_FILE})")


def _short_value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
