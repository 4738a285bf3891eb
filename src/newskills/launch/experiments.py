# SPDX-License-Identifier: Apache-2.0
"""Records of what was submitted: one folder each, on the machine that submitted, found again by name.

`<experiments>/<name>/<stamp>/` holds experiment.json (cluster without secrets, jobs with their handles and folders,
package), plan.json and files.txt (the files of the package). `<experiments>` is NEWSKILLS_EXPERIMENTS_DIR, or
`newskills/experiments` in the user's data folder.
"""

from __future__ import annotations

import datetime
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError, UnknownNameError, storage_error
from newskills.base.plan import Pipeline
from newskills.base.store import write_json
from newskills.base.terminal import listed
from newskills.launch.clusters.config import ClusterConfig, environment_setting
from newskills.launch.clusters.names import is_file_name
from newskills.launch.package import Package

RECORD, PLAN, FILES = "experiment.json", "plan.json", "files.txt"
ENDED_STATES = ("completed", "failed", "cancelled", "timeout", "unknown")
"""States of jobs that will never change again, nor start anything; a reason in brackets may follow."""


def has_ended(state: str) -> bool:
    """Return whether `state` will not change any more."""
    return state.partition(" (")[0] in ENDED_STATES


class JobRecord(Struct, frozen=True, kw_only=True):
    """One submitted job. handle: the executor's; empty: it was not submitted. commands: name → client or server.

    makes: as in base.plan.Job.
    """

    name: str
    folder: str
    logs: str
    handle: str = ""
    depends_on: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    commands: dict[str, str] = {}
    makes: tuple[str, ...] = ()


class Experiment(Struct, frozen=True, kw_only=True):
    """One submission. `name` is its expname; `id` (<name>/<stamp>) tells it from others of that name.

    submitted_at  UTC, ISO 8601
    folder        of its jobs, as the submitting machine sees it
    """

    name: str
    stamp: str
    submitted_at: str
    cluster: ClusterConfig
    folder: str
    package: Package
    jobs: tuple[JobRecord, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.name}/{self.stamp}"

    @property
    def handles(self) -> tuple[str, ...]:
        return tuple(job.handle for job in self.jobs if job.handle)


def data_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder where newskills keeps what must last on this machine."""
    base = environ.get("XDG_DATA_HOME") or Path(environ.get("HOME") or Path.home(), ".local", "share")
    return Path(base, "newskills").absolute()


def experiments_folder(environ: Mapping[str, str]) -> Path:
    own_folder = environment_setting("EXPERIMENTS_DIR", environ)
    if own_folder:
        return Path(own_folder).expanduser().absolute()
    return data_folder(environ) / "experiments"


def job_root(cluster: ClusterConfig, environ: Mapping[str, str]) -> str:
    """Return the folder of experiments' jobs and packages: job_dir, or one in the user's data folder."""
    return cluster.job_dir or str(data_folder(environ) / "jobs")


def new_stamp() -> str:
    """Return a stamp of the present time, to the millisecond, so that later ones sort behind earlier ones; two at
    once differ."""
    now = datetime.datetime.now(datetime.UTC)
    return f"{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03}-{secrets.token_hex(2)}"


class ExperimentRecords:
    """The folder of records."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.folder = experiments_folder(environ)

    def create(self, experiment: Experiment, pipeline: Pipeline, files: Iterable[str]) -> None:
        """Write the experiment's record, whole or not at all. Raises StorageError."""
        place = self.folder / experiment.name / experiment.stamp
        temporary = place.with_name(f".{experiment.stamp}.{os.getpid()}")
        try:
            temporary.mkdir(parents=True, mode=0o700)
            write_json(temporary / PLAN, pipeline)
            write_json(temporary / RECORD, experiment)
            names = "".join(f"{name}\n" for name in files)
            (temporary / FILES).write_text(names, encoding="utf-8", errors="surrogateescape")
            temporary.rename(place)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            raise storage_error(error, place) from error

    def update(self, experiment: Experiment) -> None:
        """Replace experiment.json. Raises StorageError."""
        write_json(self.folder / experiment.name / experiment.stamp / RECORD, experiment)

    def names(self) -> list[str]:
        """Return all experiments' names, the latest first."""
        stamps = ((max(self._stamps(name), default=""), name) for name in self._entries(self.folder))
        return [name for stamp, name in sorted(stamps, reverse=True) if stamp]

    def all_of(self, name: str) -> list[Experiment]:
        """Return the experiments with exactly this name, the latest first. Raises DataError for a record that
        cannot be read."""
        if not is_file_name(name):
            return []
        return [self._read(name, stamp) for stamp in sorted(self._stamps(name), reverse=True)]

    def latest(self) -> Iterator[Experiment]:
        """Yield all experiments, the latest first."""
        stamps = [(stamp, name) for name in self._entries(self.folder) for stamp in self._stamps(name)]
        for stamp, name in sorted(stamps, reverse=True):
            yield self._read(name, stamp)

    def find(self, what: str) -> Experiment:
        """Find an experiment by name, id, or a beginning of a name that only one has.

        A name means the latest experiment of which jobs were submitted, so that a failed attempt hides nothing.
        Raises UnknownNameError, ConfigError (several have that beginning, or it is no name).
        """
        name, _, stamp = what.partition("/")
        if not is_file_name(name):
            raise ConfigError(f"'{what[:120]}' is not the name of an experiment.")
        stamps = sorted(self._stamps(name), reverse=True)
        if matching := [candidate for candidate in stamps if candidate.startswith(stamp)]:
            if stamp and len(matching) > 1 and stamp not in matching:
                raise ConfigError(f"Several experiments have the name {what}: {listed(matching)}.")
            if stamp:
                wanted_stamp = stamp if stamp in matching else matching[0]
                return self._read(name, wanted_stamp)
            read = (self._read(name, candidate) for candidate in matching)
            return next((experiment for experiment in read if experiment.handles), None) or self._read(
                name, matching[0]
            )
        names = self.names()
        close = [known_name for known_name in names if known_name.startswith(name)]
        if stamps or stamp:
            raise UnknownNameError(
                "experiment", what, [f"{name}/{other_stamp}" for other_stamp in stamps] or names
            )
        if len(close) == 1:
            return self.find(close[0])
        if close:
            raise ConfigError(f"Several experiments begin with '{name}': {listed(sorted(close))}.")
        raise UnknownNameError("experiment", what, names, hint="ns experiments lists them.")

    def _read(self, name: str, stamp: str) -> Experiment:
        path = self.folder / name / stamp / RECORD
        try:
            return msgspec.json.decode(path.read_bytes(), type=Experiment)
        except OSError as error:
            raise DataError(f"Cannot read {path}: {error.strerror}.") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(
                f"{path} is not the record of an experiment ({error}).",
                hint=f"rm -r {path.parent} removes it from the records.",
            ) from error

    def _stamps(self, name: str) -> list[str]:
        return self._entries(self.folder / name)

    @staticmethod
    def _entries(folder: Path) -> list[str]:
        try:
            return [entry.name for entry in os.scandir(folder) if entry.is_dir() and is_file_name(entry.name)]
        except (FileNotFoundError, NotADirectoryError):
            return []
