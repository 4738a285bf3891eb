# SPDX-License-Identifier: Apache-2.0
"""Which jobs make which files, so that a command that is given twice does not submit its jobs twice.

Below the records, `.outputs/<hash of a folder>` lists the experiments that make something in that folder.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath

from msgspec import Struct, structs

from newskills.base.errors import UnknownNameError
from newskills.base.plan import Pipeline
from newskills.base.store import atomic_write, waiting_lock
from newskills.launch.experiments import Experiment, ExperimentRecords, has_ended

Look = Callable[[Experiment], tuple[Experiment, Mapping[str, str]]]
"""The experiment with all handles that can be found, and handle → state; no states for another cluster than ours."""


class UnfinishedJob(Struct, frozen=True):
    """A job that has not ended."""

    experiment: str
    handle: str


class RemainingJobs(Struct, frozen=True):
    """What is left of a pipeline. after: name of a job → handles of others' jobs that it has to wait for."""

    pipeline: Pipeline
    after: dict[str, tuple[str, ...]]


class OutputClaims:
    """What is made by the jobs of a pipeline. `read_only`: nothing is locked or written, as for a dry run."""

    def __init__(self, records: ExperimentRecords, pipeline: Pipeline, *, read_only: bool) -> None:
        self._records, self._read_only = records, read_only
        self._wanted = {path for job in pipeline.jobs for path in job.makes}
        folders = {str(PurePosixPath(path).parent) for path in self._wanted}
        names = sorted(sha256(folder.encode("utf-8", "surrogateescape")).hexdigest()[:24] for folder in folders)
        self._files = [records.folder / ".outputs" / name for name in names]

    @contextlib.contextmanager
    def lock_folders(self) -> Iterator[None]:
        """Lock the folders of outputs, so that other submissions into them wait. Raises StorageError."""
        with contextlib.ExitStack() as stack:
            if not self._read_only:
                for file in self._files:
                    stack.enter_context(waiting_lock(file.with_name(f"{file.name}.lock"), "A folder of outputs"))
            yield

    def busy_files(self, look: Look) -> dict[str, UnfinishedJob]:
        """Return path → the job that already makes it. Raises NewskillsError."""
        busy_outputs: dict[str, UnfinishedJob] = {}
        ended: set[str] = set()
        for name in dict.fromkeys(name for file in self._files for name in _file_words(file)):
            try:
                experiment, states = look(self._records.find(name))
            except UnknownNameError:  # somebody has removed its record
                ended.add(name)
                continue
            going = [job for job in experiment.jobs if not has_ended(states.get(job.handle, "unknown"))]
            if not going and (states or not experiment.handles):
                ended.add(name)
            for job in going:
                busy_outputs |= {
                    path: UnfinishedJob(name, job.handle) for path in self._wanted.intersection(job.makes)
                }
        self._forget(ended)
        return busy_outputs

    def add(self, experiment: str) -> None:
        """Add the claim of `experiment` to the files. Raises StorageError."""
        for file in self._files:
            _write_names(file, [*_file_words(file), experiment])

    def _forget(self, names: Collection[str]) -> None:
        if not names or self._read_only:
            return
        for file in self._files:
            _write_names(file, [name for name in _file_words(file) if name not in names])


def remaining_jobs(pipeline: Pipeline, busy: Mapping[str, UnfinishedJob]) -> RemainingJobs:
    """Return `pipeline` without the jobs whose outputs are all being made. What is being made in part is waited
    for.

    A job that needs one that is left stays, too: the other one would not wait for it.
    """
    gone: dict[str, tuple[str, ...]] = {}
    after: dict[str, tuple[str, ...]] = {}
    for job in pipeline.order():
        others = dict.fromkeys(busy[path].handle for path in job.makes if path in busy)
        if job.makes and all(path in busy for path in job.makes) and gone.keys() >= set(job.depends_on):
            gone[job.name] = tuple(others)
            continue
        others |= dict.fromkeys(handle for name in job.depends_on for handle in gone.get(name, ()))
        after[job.name] = tuple(others)
    jobs = [
        structs.replace(job, depends_on=tuple(name for name in job.depends_on if name not in gone))
        for job in pipeline.jobs
        if job.name not in gone
    ]
    return RemainingJobs(structs.replace(pipeline, jobs=tuple(jobs)), after)


def _file_words(file: Path) -> list[str]:
    try:
        return file.read_text("utf-8").split()
    except FileNotFoundError:
        return []


def _write_names(file: Path, names: Collection[str]) -> None:
    with atomic_write(file) as out:
        out.write("".join(f"{name}\n" for name in names).encode())
