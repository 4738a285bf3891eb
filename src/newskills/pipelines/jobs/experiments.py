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
from newskills.launch.experiments import ExperimentRecords
from newskills.pipelines.options import doc


class ExperimentsOptions(Struct, frozen=True, kw_only=True):
    name: Annotated[str | None, doc("only experiments of this name", {"positional": True})] = None
    last: Annotated[int, Meta(ge=1, description="largest number of experiments to show")] = 50


def run(parsed: Parsed[ExperimentsOptions]) -> int:
    options, records = parsed.options, ExperimentRecords(os.environ)
    experiments = records.latest() if options.name is None else iter(records.all_of(options.name))
    rows = []
    for experiment in itertools.islice(experiments, options.last):
        rows.append(
            (
                experiment.id,
                experiment.cluster.name,
                experiment.submitted_at[:19].replace("T", " "),
                str(len(experiment.jobs)),
                experiment.package.commit[:12],
                printable(experiment.folder),
            )
        )
    if rows:
        print_table(rows, ("experiment", "cluster", "submitted (UTC)", "jobs", "commit", "folder"))
    else:
        which = f" called '{options.name}'" if options.name else ""
        sys.stdout.write(f"no experiment{which} has been submitted from this machine ({records.folder})\n")
    return 0
