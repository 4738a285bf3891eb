# SPDX-License-Identifier: Apache-2.0
"""A limit on the CPU time of a call in this process, for work whose cost its size does not tell."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
_AGAIN = 0.05
"""Seconds between signals once the time is up: a library may swallow the first."""


class OutOfTime(BaseException):
    """Not an Exception, so that no `except Exception` of a library takes it for a failure of its own."""


def limited(work: Callable[[], T], seconds: float) -> T:
    """What `work` gives. Raises OutOfTime after `seconds` of this process's CPU time (user mode), between imports.

    Only the main thread can be interrupted: elsewhere there is no limit, and the caller has to bring one.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    before, collects = signal.signal(signal.SIGVTALRM, _stop), gc.isenabled()
    gc.disable()  # what is raised in a callback of the collector is lost, and printed
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _AGAIN)
    try:
        return work()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        if collects:
            gc.enable()


def _stop(_number: int, frame: FrameType | None) -> None:
    if not _is_uninterruptible(frame):  # else the next signal comes soon
        raise OutOfTime


def _is_uninterruptible(frame: FrameType | None) -> bool:
    """What is raised in a `__del__` is lost; a module whose import is cut off would be imported again each time."""
    if frame is not None and frame.f_code.co_name == "__del__":
        return True
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
