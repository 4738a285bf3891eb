# SPDX-License-Identifier: Apache-2.0
"""The CPU time of one answer, which all steps that look at it share.

A signal comes after each TICK of this process's time in user mode and takes what has passed, time in the kernel
included, off what is left. Time of imports is not taken off: the first answer of a kind may cause many.
"""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
TICK = 0.05
_IMPORTS = "<frozen importlib._bootstrap>"


class OutOfTime(BaseException):
    """Not an Exception, so that no `except Exception` of a library takes it for a failure of its own."""

    def __init__(self, step: str) -> None:
        super().__init__(step)
        self.step = step


class _Budget:
    """What is left for the answer that is being looked at, and which step spends it; `running` while there is one."""

    running = False
    seconds = 0.0
    step = "value"
    free = False
    looked_at: float | None = None


_BUDGET = _Budget()


def limited(work: Callable[[], T], seconds: float) -> T:
    """Return what `work` gives. Raises OutOfTime after `seconds` of CPU time.

    A call within another one draws on what that one has left, and its OutOfTime is that one's to catch. Only the main
    thread can be interrupted: elsewhere there is no limit, and the caller has to bring one.
    """
    if _BUDGET.running or threading.current_thread() is not threading.main_thread():
        return work()
    if signal.getsignal(signal.SIGVTALRM) is not _tick:  # stays: to set it costs more than most answers
        signal.signal(signal.SIGVTALRM, _tick)
    collects = gc.isenabled()
    gc.disable()  # what is raised in a callback of the collector is lost, and printed
    _BUDGET.running, _BUDGET.seconds, _BUDGET.looked_at = True, seconds, None
    signal.setitimer(signal.ITIMER_VIRTUAL, TICK, TICK)
    try:
        return work()
    finally:
        _BUDGET.running = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if collects:
            gc.enable()


def is_limited() -> bool:
    """Whether an answer's time runs, so that its OutOfTime has to be passed on."""
    return _BUDGET.running


@contextmanager
def step(name: str) -> Iterator[None]:
    """Name the step on which the time is spent, for the reason of an answer that has none left."""
    before, _BUDGET.step = _BUDGET.step, name
    try:
        yield
    finally:
        _BUDGET.step = before


def for_free(work: Callable[[], T]) -> T:
    """Return what `work` gives, without taking its time off: what is done once for all answers."""
    before, _BUDGET.free = _BUDGET.free, True
    try:
        return work()
    finally:
        _BUDGET.free = before


def _tick(_number: int, frame: FrameType | None) -> None:
    if not _BUDGET.running:
        return
    now = time.process_time()
    passed = TICK if _BUDGET.looked_at is None else now - _BUDGET.looked_at
    _BUDGET.looked_at = now
    if _BUDGET.free or _imports(frame):  # a module whose import is cut off would be imported again each time
        return
    _BUDGET.seconds -= passed
    if _BUDGET.seconds <= 0 and not _ends(frame):  # the next tick comes soon, should a library swallow this one
        raise OutOfTime(_BUDGET.step)


def _ends(frame: FrameType | None) -> bool:
    """Whether an object is being destroyed: what is raised in a `__del__` is lost."""
    return frame is not None and frame.f_code.co_name == "__del__"


def _imports(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTS:
            return True
        frame = frame.f_back
    return False
