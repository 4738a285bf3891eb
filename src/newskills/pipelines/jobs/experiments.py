# SPDX-License-Identifier: Apache-2.0
"""What `ns experiments` does: what was submitted from this machine. Asks no cluster."""

from __future__ import annotations

import itertools
import os
import sys
from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.tables import print_table
from newskills.base.terminal import printable
from newskills.config.command_line import Parsed
from newskills.launch.experiments import Experiment, ExperimentRecords
from newskills.pipelines.options import doc


class ExperimentsOptions(Struct, frozen=True, kw_only=True):
    name: Annotated[str | None, doc("only experiments of this name", {"positional": True})] = None
    last: Annotated[int, Meta(ge=1, description="largest number of experiments to show")] = 50


def list_experiments(parsed: Parsed[ExperimentsOptions]) -> list[Experiment]:
    """List for Python what was submitted from this machine, the latest first."""
    records = ExperimentRecords(os.environ)
    if parsed.options.name is None:
        experiments = records.latest()
    else:
        experiments = iter(records.all_of(parsed.options.name))
    return list(itertools.islice(experiments, parsed.options.last))


def run(parsed: Parsed[ExperimentsOptions]) -> int:
    options, experiments = parsed.options, list_experiments(parsed)
    rows = [
        (
            experiment.id,
            experiment.cluster.name,
            experiment.submitted_at[:19].replace("T", " "),
            str(len(experiment.jobs)),
            experiment.package.commit[:12],
            printable(experiment.folder),
        )
        for experiment in experiments
    ]
    if rows:
        print_table(rows, ("experiment", "cluster", "submitted (UTC)", "jobs", "commit", "folder"))
    else:
        which = f" called '{options.name}'" if options.name else ""
        folder = ExperimentRecords(os.environ).folder
        sys.stdout.write(f"no experiment{which} has been submitted from this machine ({folder})\n")
    return 0
