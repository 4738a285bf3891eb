# SPDX-License-Identifier: Apache-2.0
"""What `ns status [NAME]` does: how submitted jobs are doing."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.errors import NewskillsError
from newskills.base.tables import print_table, print_text
from newskills.base.terminal import counted
from newskills.config.command_line import Parsed
from newskills.launch.experiments import Experiment, ExperimentRecords
from newskills.launch.states import JobState
from newskills.pipelines.invocations import find_invocation
from newskills.pipelines.json_output import print_json
from newskills.pipelines.options import doc
from newskills.pipelines.submission.submitted import (
    JOB_HEAD,
    ask_about,
    find_submitted,
    job_rows,
    select_screenful,
    summarize_states,
)


class StatusOptions(Struct, frozen=True, kw_only=True):
    name: Annotated[
        str | None,
        doc(
            "experiment: its name (the latest one of that name), the beginning of a name, or NAME/STAMP; "
            "without a name: the latest experiments. Or an invocation of ns evaluate: its id, the beginning "
            "of an id, or ID.INDEX; or the output folder of a run that asks in batches",
            {"positional": True},
        ),
    ] = None
    job: Annotated[str | None, doc("only this job")] = None
    all: Annotated[bool, doc("show all jobs; without it: one screen, failed jobs first")] = False
    json: Annotated[
        bool,
        doc(
            "for an invocation: print JSON as nemo-evaluator-launcher status --json does; for batches: their records"
        ),
    ] = False
    last: Annotated[int, Meta(ge=1, description="number of experiments to show if no name is given")] = 10


def run(parsed: Parsed[StatusOptions]) -> int:
    options = parsed.options
    if options.name is not None and (invocation := find_invocation(options.name)) is not None:
        return invocation.show_status(json=options.json)
    if (
        options.name is not None
        and Path(options.name).is_dir()
        and _show_batches(Path(options.name), options.json)
    ):
        return 0
    if options.name is not None:
        chosen = find_submitted(options.name)
        jobs = chosen.states(options.job)
        print_text(_experiment_title(chosen.experiment))
        shown = jobs if options.all else select_screenful(jobs)
        if len(shown) == len(jobs):
            print_table(job_rows(jobs), JOB_HEAD)
            return 0
        sys.stdout.write(f"{len(jobs):,} jobs: {summarize_states(jobs)}\n\n")
        print_table(job_rows(shown), JOB_HEAD)
        sys.stdout.write(f"… and {len(jobs) - len(shown):,} more: ns status {options.name} --all\n")
        return 0
    return _print_overview(options.last)


def job_states(parsed: Parsed[StatusOptions]) -> list[JobState]:
    """Return, for Python, the jobs of an experiment and what they do; without a name, those of the latest
    experiments. Raises UnknownNameError, ConfigError, RemoteError."""
    options = parsed.options
    if options.name is not None:
        return find_submitted(options.name).states(options.job)
    latest = itertools.islice(ExperimentRecords(os.environ).latest(), options.last)
    return [state for experiment in latest for state in ask_about(experiment).states()]


def _show_batches(folder: Path, json: bool) -> bool:
    """Print the batches of a run; return whether there are any."""
    from newskills.run.engine.batches.shown import TABLE_HEAD, batch_rows, batches_below, look_at

    batches = batches_below(folder)
    troubles = [line for place, records in batches.items() for line in look_at(place, records, os.environ)]
    records = [record for own in batches.values() for record in own]
    if json and records:
        print_json(records)
    elif records:
        print_table(batch_rows(records), TABLE_HEAD)
    sys.stderr.writelines(f"note: {line}\n" for line in troubles)
    return bool(records)


def _print_overview(last: int) -> int:
    rows, code = list[tuple[str, ...]](), 0
    for experiment in itertools.islice(ExperimentRecords(os.environ).latest(), last):
        try:
            doing = summarize_states(ask_about(experiment).states())
        except NewskillsError as error:
            sys.stderr.write(f"error: {experiment.id}: {error}\n")
            doing, code = "?", error.exit_code
        rows.append(
            (experiment.id, experiment.cluster.name, experiment.submitted_at[:19].replace("T", " "), doing)
        )
    if not rows:
        sys.stdout.write("nothing has been submitted from this machine\n")
    else:
        print_table(rows, ("experiment", "cluster", "submitted (UTC)", "jobs"))
    return code


def _experiment_title(experiment: Experiment) -> str:
    package = experiment.package
    code = "no git repository"
    if package.commit:
        code = f"commit {package.commit[:12]}"
    if package.uncommitted:
        code += f" ({counted(len(package.uncommitted), 'file')} not committed)"
    return f"{experiment.id} on cluster {experiment.cluster.name}, {code}, submitted {experiment.submitted_at}"
