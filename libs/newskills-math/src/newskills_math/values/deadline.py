# SPDX-License-Identifier: Apache-2.0
"""The CPU time of one answer, which all steps that look at it share.

A clock looks, after each TICK, at what the thread has spent, takes it off what is left, and raises OutOfTime in that
thread when nothing is. Time of imports is not taken off: the first answer of a kind may cause many.

The clock is a thread of its own, the watchdog, which works in any thread and touches no signal. A program whose main
thread is its own may have a signal there instead (`use_signals`), which needs no thread.

One answer is worked out at a time in a process: mpmath, SymPy and ANTLR keep tables that no two threads may fill at
once, and of threads that compute only one runs anyway. Who waits spends no time.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
TICK = 0.05
IDLE_TICKS = 40
"""After so many without an answer the watchdog ends; the next answer starts another one."""
_IMPORTS = "<frozen importlib._bootstrap>"


class OutOfTime(BaseException):
    """Not an Exception, so that no `except Exception` of a library takes it for a failure of its own."""

    def __init__(self, step: str = "value") -> None:
        super().__init__(step)
        self.step = step


class _Budget:
    """What is left for the answer that is being looked at, and which step spends it."""

    __slots__ = ("clock", "done", "firing", "free", "looked_at", "seconds", "spent_in", "step", "thread")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.step = "value"
        self.spent_in = ""
        self.free = False
        self.looked_at = time.thread_time()
        self.thread = self.clock = 0
        self.firing = self.done = False

    def is_spent(self, now: float, frame: FrameType | None) -> bool:
        """Take off what has passed until `now`, unless `frame` imports; whether nothing is left.

        It is asked again at the next tick, should a library swallow what is raised.
        """
        passed, self.looked_at = now - self.looked_at, now
        if self.free or _is_importing(frame):  # a module whose import is cut off would be imported again each time
            return False
        self.seconds -= passed
        return self.seconds <= 0


class _Thread(threading.local):
    """The budget of the answer that this thread looks at, if any."""

    budget: _Budget | None = None


_THREAD = _Thread()


def run_limited(work: Callable[[], T], seconds: float) -> T:
    """Return what `work` gives. Raises OutOfTime after `seconds` of this thread's CPU time.

    A call within another one draws on what that one has left, and its OutOfTime is that one's to catch.
    """
    if _THREAD.budget is not None:
        return work()
    with _STATE.lock:
        if _STATE.signals and threading.get_ident() == threading.main_thread().ident:
            return _by_signal(work, _Budget(seconds))
        return _by_watchdog(work, _Budget(seconds))


def is_limited() -> bool:
    """Return whether an answer's time runs in this thread, so that its OutOfTime has to be passed on."""
    return _THREAD.budget is not None


def use_signals() -> None:
    """Let SIGVTALRM be the clock of the main thread, for programs that use it for nothing else."""
    _STATE.signals = True


@contextmanager
def name_step(name: str) -> Iterator[None]:
    """Name the step on which the time is spent, for the reason of an answer that has none left."""
    budget = _THREAD.budget
    if budget is None:
        yield
        return
    before, budget.step = budget.step, name
    try:
        yield
    finally:
        budget.step = before


def for_free(work: Callable[[], T]) -> T:
    """Return what `work` gives, without taking its time off: what is done once for all answers."""
    budget = _THREAD.budget
    if budget is None:
        return work()
    before, budget.free = budget.free, True
    try:
        return work()
    finally:
        budget.free = before


def _is_ending_object(frame: FrameType | None) -> bool:
    """Return whether an object is being destroyed, or garbage collected: what is raised in there is printed and
    lost."""
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        if frame.f_code.co_name == "__del__" or frame.f_code in callbacks:
            return True
        frame = frame.f_back
    return False


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTS:
            return True
        frame = frame.f_back
    return False


# --- a signal in the main thread


def _by_signal(work: Callable[[], T], budget: _Budget) -> T:
    if signal.getsignal(signal.SIGVTALRM) is not _on_tick:  # stays: to set it costs more than most answers
        signal.signal(signal.SIGVTALRM, _on_tick)
    collects = gc.isenabled()
    gc.disable()  # a tick that comes in one of its callbacks would come to nothing
    _THREAD.budget = budget
    signal.setitimer(signal.ITIMER_VIRTUAL, TICK, TICK)
    try:
        return work()
    finally:
        _THREAD.budget = None
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if collects:
            gc.enable()


def _on_tick(_number: int, frame: FrameType | None) -> None:
    budget = _THREAD.budget
    if budget is not None and budget.is_spent(time.thread_time(), frame) and not _is_ending_object(frame):
        raise OutOfTime(budget.step)


# --- a watchdog for any thread


class _State:
    """What all threads share: whose turn it is, and the watchdog with the budget that it looks at."""

    def __init__(self, *, signals: bool = False) -> None:
        self.signals = signals
        self.lock = threading.Lock()
        self.starting = threading.Lock()
        self.watched: _Budget | None = None
        self.watchdog: threading.Thread | None = None


_STATE = _State()


def _renew_state() -> None:
    """Begin anew in a forked process, where no other thread lives on, whatever it held."""
    global _STATE  # noqa: PLW0603 - a fork changes what there is
    _STATE = _State(signals=_STATE.signals)
    _THREAD.budget = None


os.register_at_fork(after_in_child=_renew_state)


def _by_watchdog(work: Callable[[], T], budget: _Budget) -> T:
    """Stop work at its deadline, as a signal would do it, but for any thread.

    What the watchdog raises may arrive between any two instructions, also when the work has just ended: hence the
    second `_release_watch`, in whose time no other one comes, since each TICK of this thread's time brings one at most.
    """
    budget.thread = threading.get_ident()
    budget.clock = time.pthread_getcpuclockid(budget.thread)
    _THREAD.budget = _STATE.watched = budget
    try:
        try:
            if _STATE.watchdog is None:
                _start_watchdog()
            return work()
        finally:
            _release_watch(budget)
    except OutOfTime:
        _release_watch(budget)
        raise OutOfTime(budget.spent_in or budget.step) from None


def _release_watch(budget: _Budget) -> None:
    """End the watch, so that nothing is raised any more. May be called again where it was cut off."""
    budget.done = True
    while budget.firing:  # it has not seen that we are done
        time.sleep(0)
    if budget.spent_in:
        _raise_in(budget.thread, None)
    _STATE.watched = None
    _THREAD.budget = None


def _start_watchdog() -> None:
    with _STATE.starting:
        if _STATE.watchdog is None:
            _STATE.watchdog = threading.Thread(target=_watch_thread, name="newskills-math watchdog", daemon=True)
            _STATE.watchdog.start()


def _watch_thread() -> None:
    """Test the answer that is being worked out, each TICK, until there was none for a while."""
    idle = 0
    while True:
        time.sleep(TICK)
        budget = _STATE.watched
        if budget is not None:
            idle = 0
            _look_at(budget)
            continue
        idle += 1
        if idle < IDLE_TICKS:
            continue
        with _STATE.starting:
            # In this order: whoever comes now sees that there is no watchdog, or is seen.
            _STATE.watchdog = None
            if _STATE.watched is None:
                return
            _STATE.watchdog = threading.current_thread()


def _look_at(budget: _Budget) -> None:
    try:
        now = time.clock_gettime(budget.clock)
    except OSError:  # the thread has ended
        return
    if not budget.is_spent(now, sys._current_frames().get(budget.thread)):
        return
    budget.firing = True  # before it is asked whether it is done: see _release
    try:
        if not budget.done and not _is_ending_object(sys._current_frames().get(budget.thread)):
            budget.spent_in = budget.spent_in or budget.step
            _raise_in(budget.thread, OutOfTime)
    finally:
        budget.firing = False


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Let `error` be raised in a thread as soon as it runs Python code; None takes back what was not raised yet."""
    what = ctypes.py_object() if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), what)
