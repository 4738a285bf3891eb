# SPDX-License-Identifier: Apache-2.0
"""What `ns info [ID]` does: what an invocation is, where its files lie, what it has scored."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from newskills.base.errors import DataError
from newskills.base.tables import print_table
from newskills.base.terminal import printable
from newskills.config.command_line import Parsed
from newskills.pipelines.invocations import Invocation
from newskills.pipelines.options import doc
from newskills_evaluator.running.invocations import invocation_jobs, print_jobs

if TYPE_CHECKING:
    from newskills_evaluator.invocations import InvocationJob


class InfoOptions(Struct, frozen=True, kw_only=True):
    id: Annotated[
        str | None,
        doc(
            "invocation of ns evaluate: its id, the beginning of an id, or ID.INDEX for one job; without: "
            "the latest invocations",
            {"positional": True},
        ),
    ] = None
    config: Annotated[bool, doc("show the configuration instead")] = False
    last: Annotated[int, Meta(ge=1, description="number of invocations to show if none is named")] = 20


def find_invocations(parsed: Parsed[InfoOptions]) -> list[Invocation]:
    """Return the invocation that is named, else the latest ones, the last first. Raises UnknownNameError,
    ConfigError."""
    from newskills_evaluator.invocations import Store
    from newskills_evaluator.oversight import job_statuses
    from newskills_evaluator.running.invocation import ended_invocation

    options = parsed.options
    if options.id is not None:
        invocations = [invocation_jobs(options.id)]
    else:
        latest = reversed(Store(os.environ).invocations().values())
        invocations = list(itertools.islice(latest, options.last))
    statuses = [job_statuses(entries, os.environ) for entries in invocations]
    return [ended_invocation(jobs, next((job.code for job in jobs if job.code), 0)) for jobs in statuses]


def run(parsed: Parsed[InfoOptions]) -> int:
    """Show the named invocation, else the latest ones; return the exit code. Raises as `find_invocations`."""
    options = parsed.options
    if options.id is None:
        return _print_invocations(options.last)
    entries = invocation_jobs(options.id)
    if options.config:
        return _print_config(entries[0])
    from newskills_evaluator.oversight import job_statuses

    first = entries[0]
    sys.stdout.write(
        f"invocation {first.invocation_id}, executor {first.executor}, submitted {_format_time(first)}\n"
    )
    print_jobs(job_statuses(entries, os.environ))
    for entry in entries:
        _print_scores(entry)
    return 0


def _print_invocations(last: int) -> int:
    from newskills_evaluator.invocations import Store

    store = Store(os.environ)
    rows = []
    for name, entries in itertools.islice(reversed(store.invocations().items()), last):
        tasks = printable(", ".join(entry.task for entry in entries))
        rows.append((name, entries[0].executor, _format_time(entries[0]), tasks))
    if rows:
        print_table(rows, ("invocation", "executor", "submitted", "tasks"))
    else:
        sys.stdout.write(f"no invocation is known ({store.path})\n")
    return 0


def _print_config(entry: InvocationJob) -> int:
    import yaml

    from newskills_evaluator.masking import mask_secrets

    sys.stdout.write(
        printable(yaml.safe_dump(mask_secrets(entry.config or {}), sort_keys=False, allow_unicode=True))
    )
    return 0


def _print_scores(entry: InvocationJob) -> None:
    """Print the scores of a task whose results lie on this machine."""
    from newskills_evaluator.export_results import flat_scores
    from newskills_evaluator.results_yml import task_results

    artifacts = Path(entry.folder, "artifacts")
    if not artifacts.is_dir():
        return
    try:
        scores = flat_scores(task_results(artifacts))
    except DataError:
        return
    rows: list[Sequence[str]] = [(printable(name), f"{value:g}") for name, value in scores.items()]
    sys.stdout.write(f"\n{entry.job_id} {printable(entry.task)}\n")
    print_table(rows)


def _format_time(entry: InvocationJob) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.timestamp))
