# SPDX-License-Identifier: Apache-2.0
"""What a supervisor learns of its children, on real ones."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest
from tests.sandbox import children

from newskills_sandbox.inside import processes


@pytest.fixture
def stopped() -> Iterator[int]:
    """The id of a child that has been seen to stop."""
    with subprocess.Popen(["sleep", "60"]) as child:
        os.kill(child.pid, signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        yield child.pid
        child.kill()


def test_a_child_that_stays_stopped_is_undisturbed(stopped: int) -> None:
    os.kill(stopped, signal.SIGSTOP)
    assert processes.undisturbed(stopped)
    assert processes.undisturbed(stopped)


def test_a_child_that_went_on_is_disturbed(stopped: int) -> None:
    os.kill(stopped, signal.SIGCONT)
    assert not processes.undisturbed(stopped)


def test_a_child_that_went_on_for_a_moment_is_disturbed(stopped: int) -> None:
    os.kill(stopped, signal.SIGCONT)
    os.kill(stopped, signal.SIGSTOP)
    os.waitid(os.P_PID, stopped, os.WSTOPPED | os.WNOWAIT)
    assert not processes.undisturbed(stopped)


def test_a_child_that_is_gone_is_disturbed() -> None:
    with subprocess.Popen(["true"]) as child:
        child.wait()
    assert not processes.undisturbed(child.pid)


def test_a_child_that_stops_sends_no_signal() -> None:
    answers = children.run(
        """
signal.signal(signal.SIGCHLD, lambda *_: heard.append(1))
linux.only_ends_of_children()
heard = []
child = os.fork()
if child == 0:
    signal.pause()
os.kill(child, signal.SIGSTOP)
os.waitpid(child, os.WUNTRACED)
os.kill(child, signal.SIGCONT)
os.waitpid(child, os.WCONTINUED)
attempt("stopped and went on", lambda: bool(heard))
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
attempt("ended", lambda: bool(heard))
"""
    )
    assert answers == {"stopped and went on": False, "ended": True}
