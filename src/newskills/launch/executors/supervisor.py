# SPDX-License-Identifier: Apache-2.0
"""Stands above one job of plain processes, so that it needs nobody else: waits for other jobs, runs job.sh, cleans up.

`python supervisor.py FOLDER LOGS DEPENDENCY_TYPE [FOLDER_OF_ANOTHER_JOB ...]` returns at once: 0 started, 3 the job
runs already. What stays behind is a process of its own session that holds a lock on FOLDER/supervisor as long as it
lives. The kernel frees the lock, so a process id that was given to another process deceives nobody, and waiting for a
job is waiting for its lock. All descendants of job.sh become its children when their parents die (child subreaper):
none is left when it ends, nor a zombie. Between it and job.sh stands a keeper of the same kind, which ends them where
both were killed at the same time. Standard library only: it starts in some 20 ms.

`python supervisor.py --attached FOLDER LIFE ABOVE` stays in the foreground and ends with the process ABOVE, which
started it: for jobs on nodes that may be lost (executor ray). FOLDER/job.ended says LIFE when nothing of it is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
RUNS_ALREADY = 3
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
ALONE = signal.SIGUSR1
"""Tells the keeper that the supervisor has died."""
OUT_OF_TIME = signal.SIGUSR2
"""Tells an attached one that the time limit is near."""
TICK = 1.0
"""Seconds. Python runs the handler of a signal that comes just before a system call after that call only, and those
here may last for days: what interrupts them now and then lets it run."""


class Cancelled(Exception):
    """Told to stop while the job waited for others."""


class Abandoned(Exception):
    """The process above has died, or wants everything to end at once."""


class JobSupervisor:
    """One job. `folder`, `logs`: absolute; `needs`: folders of the jobs that it waits for."""

    def __init__(self, folder: str, logs: str, kind: str, needs: list[str]) -> None:
        self.folder, self.logs, self.kind, self.needs = folder, logs, kind, needs
        self.job = 0
        self.cancelled = False
        self.waiting = False
        self.told = False

    def start(self) -> int:
        """Start the supervising process and return."""
        lock = os.open(f"{self.folder}/supervisor", os.O_RDWR | os.O_CREAT, 0o600)
        if not _try_lock(lock):
            return RUNS_ALREADY
        self.remove_marks()
        for number in STOPPING:
            signal.signal(number, self.stop)
        signal.signal(ALONE, self.pass_on)
        pid = os.fork()
        if pid == 0:
            os.setsid()
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
            self.run()
            return 0
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{pid}\n{self.logs}\n".encode("utf-8", "surrogateescape"), 0)
        return 0

    def remove_marks(self) -> None:
        """Remove the marks of an earlier life."""
        for stale in ("job.exit", "job.started", "job.cleaned"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.folder}/{stale}")

    def stop(self, number: int, frame: Any) -> None:
        self.cancelled = True
        if self.waiting:
            self.waiting = False
            raise Cancelled
        self.pass_on(number, frame)

    def pass_on(self, number: int, frame: Any) -> None:
        self.told = True
        self.send_signal(signal.SIGTERM)

    def remind_job(self, number: int, frame: Any) -> None:
        """Tell job.sh again that it is to stop: bash ignores TERM while it sets a trap for it, and one that comes just
        before it waits for its children only when one ends. URG does nothing where TERM has been seen."""
        if self.told:
            self.send_signal(signal.SIGURG)

    def send_signal(self, number: signal.Signals) -> None:
        if self.job:
            with contextlib.suppress(ProcessLookupError):  # its end may be known already, and not yet noted
                os.kill(self.job, number)

    def run(self) -> None:
        start_clock()
        obstacle = self.find_obstacle()
        if obstacle:
            self.write_exit_mark(143, f"cancelled {obstacle}")
            return
        if code := self.code_of(self.start_child(self.run_job, ALONE)):
            self.close(code)  # the keeper itself was killed
        end_children()

    def close(self, code: int) -> None:
        """Remove what is left of a job that ended with `code`, and write its end where it could not."""
        self.clean_up()
        end_children()
        if os.path.exists(f"{self.folder}/job.exit"):
            return
        if self.cancelled:
            self.write_exit_mark(143, "cancelled received SIGTERM")
        elif code < 0:
            self.write_exit_mark(128 - code, f"failed job.sh was killed by signal {-code}")
        else:
            self.write_exit_mark(code or 1, "failed job.sh ended too early")

    def find_obstacle(self) -> str:
        """Wait for the other jobs; return why this one must not start, empty where it may."""
        try:
            self.waiting = True
            for need in self.needs:
                if not self.cancelled and (why := self.await_job(need)):
                    return why
            self.waiting = False
        except Cancelled:
            pass
        if self.cancelled:
            return "before it started"
        return ""

    def await_job(self, need: str) -> str:
        with open(f"{need}/supervisor", "rb") as lock:
            if self.kind == "after":
                while not os.path.exists(f"{need}/job.started") and not _try_lock(lock.fileno(), shared=True):
                    time.sleep(0.1)
                return ""
            fcntl.flock(lock, fcntl.LOCK_SH)
        succeeded = exit_mark(need).startswith("0 ")
        if self.kind in ("afterok", "aftercorr") and not succeeded:
            return f"its dependency {need} did not succeed"
        if self.kind == "afternotok" and succeeded:
            return f"its dependency {need} did not fail"
        return ""

    def start_child(self, work: Callable[[], NoReturn], lost: signal.Signals) -> int:
        """Start a process that does `work`, with signals blocked, and gets `lost` when this one has died; return its
        id."""
        me = os.getpid()
        # A signal waits until both know what to do with it: the child would pass it on to nobody.
        signal.pthread_sigmask(signal.SIG_BLOCK, (*STOPPING, ALONE))
        job = os.fork()
        if job == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, lost)
            if os.getppid() == me:
                work()
            os._exit(127)
        self.job = job
        cancelled = self.cancelled  # what comes from now on passes itself on
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*STOPPING, ALONE))
        if cancelled:
            os.kill(job, signal.SIGTERM)
        return job

    def code_of(self, job: int) -> int:
        """Wait for that child and return its exit code (-N: by signal N); reap whatever else ends meanwhile."""
        while True:
            pid, status = os.wait()
            if pid == job:
                self.job = 0
                return os.waitstatus_to_exitcode(status)

    def run_job(self) -> NoReturn:
        """Run job.sh, and end when none of its processes is left."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        start_clock()
        self.job = 0
        signal.signal(signal.SIGALRM, self.remind_job)
        self.close(self.code_of(self.start_child(self.run_script, signal.SIGTERM)))
        os._exit(0)

    def run_script(self) -> NoReturn:
        for number in (*STOPPING, ALONE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*STOPPING, ALONE))
        with contextlib.suppress(OSError):
            os.execvp("bash", ["bash", f"{self.folder}/job.sh"])  # noqa: S606
        os.write(2, b"cannot start bash\n")
        os._exit(127)

    def clean_up(self) -> None:
        """Run the executor's own `job.clean_up`, for processes and containers that are not descendants of job.sh."""
        script = f"{self.folder}/job.clean_up"
        if os.path.exists(script):
            with contextlib.suppress(OSError):
                os.waitpid(os.posix_spawnp("bash", ["bash", script], os.environ), 0)

    def write_exit_mark(self, code: int, text: str) -> None:
        self.write_file("job.exit", f"{code} {text}")

    def write_file(self, name: str, text: str) -> None:
        """Write a file at once, so that a reader sees all of the text or no file."""
        new = f"{self.folder}/.{name}.{os.getpid()}"
        with open(new, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{text}\n")
        os.rename(new, f"{self.folder}/{name}")


class AttachedSupervisor(JobSupervisor):
    """One job whose caller waits for it in other ways, and may die at any time. `above`: its process id."""

    def __init__(self, folder: str, life: str, above: int) -> None:
        super().__init__(folder, "", "", [])
        self.life, self.above = life, above
        self.abandoned = False

    def start(self) -> int:
        """Run job.sh to its end; none of its processes is left then."""
        try:
            for number in STOPPING:
                signal.signal(number, self.stop)
            signal.signal(ALONE, self.abandon)
            signal.signal(OUT_OF_TIME, self.warn)
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, ALONE)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())  # of Ray's workers, which block some
            self.remove_marks()
            start_clock()
            signal.signal(signal.SIGALRM, self.remind_job)
            if os.getppid() == self.above:
                self.close(self.code_of(self.start_child(self.run_script, signal.SIGTERM)))
        except Abandoned:
            end_children()  # first: what still writes must stop before somebody else goes on
            self.clean_up()
        self.write_file("job.ended", self.life)
        return 0

    def abandon(self, number: int, frame: Any) -> None:
        if not self.abandoned:
            self.abandoned = True
            raise Abandoned

    def warn(self, number: int, frame: Any) -> None:
        self.send_signal(signal.SIGUSR1)


def start_clock() -> None:
    """Start the clock that interrupts system calls of this process from now on, see TICK; its children have no
    such clock."""
    signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_REAL, TICK, TICK)


def _try_lock(fd: int, *, shared: bool = False) -> bool:
    """Try to take the lock for a second (a shared one: once); a process that looks at the state of the job holds a
    shared lock for an instant."""
    for _ in range(1 if shared else 20):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            return True
        if not shared:
            time.sleep(0.05)
    return False


def exit_mark(folder: str) -> str:
    """Return the text of job.exit; empty where there is none."""
    try:
        with open(f"{folder}/job.exit", encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def end_children() -> None:
    """Kill all descendants: those whose parent died become children of this process, so kill until there is no
    child."""
    while True:
        for pid in list_children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def list_children() -> list[int]:
    """Return the ids of the processes whose parent this process is."""
    child_pids, me = [], os.getpid()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # pid (name) state parent …; the name may hold anything, also brackets
                if int(file.read().rpartition(b")")[2].split()[1]) == me:
                    child_pids.append(int(name))
    return child_pids


def main(argv: list[str]) -> int:
    if argv[0] == "--attached":
        return AttachedSupervisor(argv[1], argv[2], int(argv[3])).start()
    return JobSupervisor(argv[0], argv[1], argv[2], argv[3:]).start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
