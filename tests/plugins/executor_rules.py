# SPDX-License-Identifier: Apache-2.0
"""What every executor does with jobs, wherever it places them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from tests.launch.places import client, job, until

from newskills.base.protocols import Executor
from newskills.launch.experiments import has_ended

SAVES = """
import pathlib, signal, sys, time
def save(*_):
    pathlib.Path(sys.argv[1]).write_text("saved")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
pathlib.Path(sys.argv[1] + ".ready").touch()
time.sleep(600)
"""
MARKS = """
import pathlib, sys
print("from", sys.argv[1], sys.argv[2:], flush=True)
pathlib.Path(sys.argv[1]).touch(exist_ok=False)
"""
FOLLOWS = "import pathlib, sys; print(pathlib.Path(sys.argv[1]).exists(), flush=True); raise SystemExit(3)"
WORDS = ("a b", "it's", '"$HOME"', "new\nline", "--x=`id`;#")


Make = Callable[[str], Executor]
"""Name of an experiment → an executor that submits it: jobs of several experiments may wait for each other."""


class Submitted(Struct, frozen=True):
    """A job, and who has submitted it."""

    executor: Executor
    handle: str

    def state(self) -> str:
        return self.executor.state([self.handle])[self.handle].partition(" ")[0]

    def ended(self) -> str:
        """The state at its end."""
        until(lambda: has_ended(self.state()), f"the end of {self.handle}", patience=480)
        return self.state()


def submitted(make: Make, name: str, code: str, *words: str, after: Submitted | None = None) -> Submitted:
    executor = make(name)
    handle = executor.submit(job(name, client("main", code, *words)), after=[after.handle] if after else [])
    return Submitted(executor, handle)


def check_states_logs_and_dependencies(make: Make, folder: Path) -> None:
    """A job ends as its client does, what depends on it starts afterwards, and words arrive as they were written."""
    mark = folder / "the mark"
    first = submitted(make, "first", MARKS, str(mark), *WORDS)
    second = submitted(make, "second", FOLLOWS, str(mark), after=first)
    assert first.handle != second.handle
    assert (first.ended(), second.ended()) == ("completed", "failed")
    assert f"from {mark} {list(WORDS)}" in list(first.executor.logs(first.handle))
    assert "True" in list(second.executor.logs(second.handle))
    for job_that_has_ended in (first, second):
        job_that_has_ended.executor.cancel([job_that_has_ended.handle])
    assert (first.state(), second.state()) == ("completed", "failed")


def check_cancelling(make: Make, folder: Path) -> None:
    """A job that waits never starts; one that runs may save its work."""
    saved, never = folder / "saved", folder / "never"
    running = submitted(make, "running", SAVES, str(saved))
    waiting = submitted(make, "waiting", SAVES, str(never), after=running)
    until(Path(f"{saved}.ready").exists, "the client to start", patience=480)
    waiting.executor.cancel([waiting.handle])
    assert waiting.ended() == "cancelled"
    running.executor.cancel([running.handle])
    assert running.ended() == "cancelled"
    assert saved.read_text() == "saved"
    assert not Path(f"{never}.ready").exists()
