# SPDX-License-Identifier: Apache-2.0
"""Executor `none`: jobs as plain processes of this machine, with dependencies, in parallel where they allow it.

The handle of a job is its folder. A supervisor stands above each job (supervisor.py), so that jobs go on when the
command that submitted them has ended, and nothing is left of a job that has ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from newskills.base.errors import ConfigError, LockedError, StorageError, storage_error
from newskills.base.plan import Command, Job
from newskills.base.replacing import replacing_file
from newskills.launch.clusters.variables import job_variables
from newskills.launch.executors import supervisor
from newskills.launch.job_script import render_scripts
from newskills.launch.place import SIGNAL_GROUP, JobFolder, Site, Variable

STATES = {"completed": "completed", "failed": "failed", "cancelled": "cancelled", "time": "timeout"}
"""Second word of job.exit → state."""
HERE = "127.0.0.1"


def make(site: Site) -> Processes:
    return Processes(site)


class Processes:
    """Executor and Place in one: one node, no containers."""

    def __init__(self, site: Site) -> None:
        self.cluster = site.cluster
        self._site = site
        self._variables = job_variables(site.cluster, site.environ)

    def submit(self, job: Job, *, after: Sequence[str] = ()) -> str:
        """Start the job, or a process that waits for the jobs `after`, and return at once. Raises what `prepare` and
        `start` raise."""
        return self.start(self.prepare(job), after=after)

    def prepare(self, job: Job) -> JobFolder:
        """Write the scripts into the job's folder, which others cannot read.

        Raises ConfigError for a job that cannot be written down, LockedError where it still runs, StorageError.
        """
        folder = self._site.job_folder(job)
        texts = self.texts(job, folder)
        path = Path(folder.path)
        if is_supervised(path):
            raise _busy_error(path)
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            Path(folder.logs).mkdir(parents=True, exist_ok=True, mode=0o700)
            for name, text in texts.items():
                # Replaced, not rewritten: a bash that still reads the old file goes on with that.
                with replacing_file(path / name, durable=False) as file:
                    file.write(text.encode("utf-8", "surrogateescape"))
        except OSError as error:
            raise storage_error(error, path) from error
        return folder

    def texts(self, job: Job, folder: JobFolder) -> dict[str, str]:
        """Return the files of the job's folder. Raises ConfigError."""
        return render_scripts(job, folder, self)

    def start(self, folder: JobFolder, *, after: Sequence[str] = ()) -> str:
        """Start the job that `prepare` has written; return the handle.

        Raises ConfigError for an unknown handle in `after` or a program that is missing here, LockedError where the job
        still runs in the same folder, StorageError.
        """
        for handle in after:
            _read_supervisor(Path(handle))
        for tool in ("bash", "setsid"):
            if shutil.which(tool, path=self._site.environ.get("PATH")) is None:
                raise ConfigError(f"Jobs on this machine need the program '{tool}', which is not in PATH.")
        argv = [
            sys.executable,
            "-I",
            "-S",
            supervisor.__file__,
            folder.path,
            folder.logs,
            self.cluster.dependency_type,
        ]
        environ = {**self._site.environ, **self._variables.secrets}
        log = Path(folder.logs, "job.log")
        with log.open("ab") as output:
            code = subprocess.run(
                [*argv, *after], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environ, check=False
            ).returncode
        if code == supervisor.RUNS_ALREADY:
            raise _busy_error(Path(folder.path))
        if code != 0:
            raise StorageError(f"The job in {folder.path} could not be started: see {log}.")
        return folder.path

    def state(self, handles: Sequence[str]) -> dict[str, str]:
        """Return handle → pending, running, completed, failed, cancelled, timeout; unknown where no job has been."""
        return {handle: _job_state(Path(handle)) for handle in handles}

    def logs(self, handle: str) -> Iterator[str]:
        """Yield the lines of the job's own log, then of each command's below a line with its path. Raises
        ConfigError."""
        _, logs = _read_supervisor(Path(handle))
        files = sorted(logs.glob("*.log"), key=lambda file: (file.name != "job.log", file.name))
        for file in files:
            yield f"==> {file} <=="
            with file.open(encoding="utf-8", errors="replace") as lines:
                yield from (line.rstrip("\n") for line in lines)

    def cancel(self, handles: Sequence[str]) -> None:
        """Ask the jobs to stop and return at once: clients get TERM and may save their work, servers follow.

        Asking twice makes `ns` give up requests in flight. Jobs that have ended are no error; raises ConfigError for an
        unknown handle.
        """
        for handle in handles:
            pid, _ = _read_supervisor(Path(handle))
            if is_supervised(Path(handle)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)

    def wait(self, handles: Sequence[str]) -> dict[str, str]:
        """Return the states when all have ended. Ctrl-C cancels them, waits for their end, and is raised then."""
        interrupt: KeyboardInterrupt | None = None
        left = list(handles)
        while left:
            try:
                _until_free(Path(left[0]))
                left.pop(0)
            except KeyboardInterrupt as error:
                interrupt = error
                self.cancel(left)
        if interrupt is not None:
            raise interrupt
        return self.state(handles)

    def header(self, job: Job, folder: JobFolder) -> Sequence[str]:
        return ()

    def prologue(self, job: Job, folder: JobFolder) -> Sequence[str]:
        return ()

    def step(self, job: Job, group: int, command: Command, folder: JobFolder) -> Sequence[str | Variable]:
        return ("setsid",)

    def environment(self, command: Command) -> Mapping[str, str]:
        plain = dict(self._variables.plain)
        if self._site.code:
            paths = [self._site.code, plain.get("PYTHONPATH") or self._site.environ.get("PYTHONPATH", "")]
            plain["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        return plain

    def workdir(self, command: Command, folder: JobFolder) -> str:
        return command.workdir or folder.code or os.getcwd()

    def host(self, job: Job, group: int) -> str:
        return HERE

    def first_node(self, job: Job, group: int) -> str:
        return HERE

    def inside(self, command: Command, folder: JobFolder) -> Sequence[str]:
        return ()

    def signal(self, job: Job, folder: JobFolder) -> Sequence[str]:
        return SIGNAL_GROUP

    def out_of_time(self, job: Job, folder: JobFolder) -> Sequence[str]:
        return ()


def _busy_error(folder: Path) -> LockedError:
    return LockedError(f"Job '{folder.name}' in {folder} is still running.", hint="Wait for it, or cancel it.")


def _job_state(folder: Path) -> str:
    """Return the state of the job in `folder`. It has ended when nobody supervises it any more: what it leaves behind
    is removed after its end is noted."""
    if not (folder / "supervisor").is_file():
        return "unknown"
    if is_supervised(folder):
        if (folder / "job.started").exists():
            return "running"
        return "pending"
    words = supervisor.exit_mark(str(folder)).split(maxsplit=2)
    if len(words) > 1:
        return STATES.get(words[1], "failed")
    return "failed"


def is_supervised(folder: Path) -> bool:
    """Return whether the job in `folder` has a living supervisor."""
    try:
        with (folder / "supervisor").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _until_free(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError), (folder / "supervisor").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)


def _read_supervisor(folder: Path) -> tuple[int, Path]:
    """Return the process id of the supervisor (while its lock is held) and the folder of logs."""
    try:
        pid, _, logs = (folder / "supervisor").read_text("utf-8", "surrogateescape").partition("\n")
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(f"There is no job '{folder}'.") from None
    return int(pid), Path(logs.removesuffix("\n"))
