# SPDX-License-Identifier: Apache-2.0
"""What the commands about submitted jobs share where an invocation is meant: finding it, tables."""

from __future__ import annotations

import os
from collections.abc import Sequence

from newskills.base.errors import UnknownNameError
from newskills.base.terminal import printable
from newskills.commands._columns import print_table
from newskills.interop.invocations import Entry, Store, looks_like_id, progress
from newskills.interop.oversight import Looked
from newskills.launch.experiments import Records


def meant(name: str) -> list[Entry] | None:
    """Jobs of the invocation (or the one job) that `name` means; None: it is an experiment, or nothing.

    Experiments come first: their names meant something before there were invocations. Raises ConfigError where the
    beginnings of several invocations are so.
    """
    if not looks_like_id(name):
        return None
    try:
        Records(os.environ).find(name)
    except UnknownNameError:
        try:
            return Store(os.environ).find(name)
        except UnknownNameError:
            return None
    return None


def invocation(name: str) -> list[Entry]:
    """The same for commands that know nothing else. Raises UnknownNameError."""
    return Store(os.environ).find(name)


def print_jobs(looked: Sequence[Looked]) -> None:
    rows: list[tuple[str, ...]] = [("job", "task", "state", "exit", "replies", "folder")]
    for one in looked:
        done = progress(one.entry)
        why = f": {printable(one.job.why)}" if one.job is not None and one.job.why and one.job.code else ""
        rows.append(
            (
                one.entry.job_id,
                printable(one.entry.task),
                one.state + why,
                "" if one.code is None else str(one.code),
                "" if done is None else str(done),
                printable(str(one.entry.folder)),
            )
        )
    print_table(rows)
