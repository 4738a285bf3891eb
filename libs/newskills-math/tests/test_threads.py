# SPDX-License-Identifier: Apache-2.0
"""Deadlines in any thread: what is costly ends, what has ended is left alone, and no signal is touched."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import pytest

from newskills_math import AnswerComparison, compare
from newskills_math.values import deadline
from newskills_math.values.deadline import TICK, OutOfTime, for_free, is_limited, name_step, run_limited

# What arrives in a callback of the collector or of a weak reference, as hypothesis has, is printed and lost; it is
# raised again a TICK later.
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")

T = TypeVar("T")
THREADS = 8
SUMS = ",".join(rf"\sum_{{n=1}}^{{\infty}} \frac{{1}}{{n^2+{i}}}" for i in range(50))
"""Seconds of computing, by our own reader."""
ENOUGH = 20
"""Times a budget: what no clock that works needs, however slow the machine is."""


def in_threads(work: Callable[[int], T]) -> list[tuple[T, float]]:
    """What `work` gives in each of so many threads at once, and the CPU seconds of each thread."""
    ready = threading.Barrier(THREADS)

    def timed(number: int) -> tuple[T, float]:
        ready.wait()
        start = time.thread_time()
        result = work(number)
        return result, time.thread_time() - start

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(timed, range(THREADS)))


def in_python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def spin() -> None:
    while True:
        sum(range(1_000))


def test_costly_answers_end_in_eight_threads() -> None:
    def work(number: int) -> AnswerComparison:
        return compare(SUMS.replace("+1}", f"+{number}}}"), SUMS.replace("n^2", "2n^2"), seconds=0.1)

    for result, cpu in in_threads(work):
        assert (result.equal, result.reason) == (None, "no time left in step value")
        assert cpu < 0.1 * ENOUGH


def test_answers_beside_costly_ones_get_their_own_verdicts() -> None:
    def work(number: int) -> list[bool | None]:
        if number % 2:
            return [compare(SUMS.replace("+1}", f"+{number}}}"), SUMS.replace("n^2", "3n^2"), seconds=0.1).equal]
        pairs = [(rf"\frac{{{n}}}{{7}}+x", rf"x+\frac{{{2 * n}}}{{14}}") for n in range(number, 400, 5)]
        return [compare(gold, answer).equal for gold, answer in pairs]

    for number, (verdicts, _) in enumerate(in_threads(work)):
        assert set(verdicts) == ({None} if number % 2 else {True})


def test_time_is_what_the_thread_itself_computes() -> None:
    def sleep(_number: int) -> bool:
        run_limited(lambda: time.sleep(0.2), 0.05)
        return True

    assert all(result for result, _ in in_threads(sleep))


def test_what_swallows_exceptions_ends_as_well() -> None:
    def stubborn() -> None:
        while True:
            try:
                spin()
            except Exception:
                continue

    def work(_number: int) -> str:
        with pytest.raises(OutOfTime):
            run_limited(stubborn, 0.05)
        return "ended"

    assert {result for result, _ in in_threads(work)} == {"ended"}


def test_nothing_is_raised_behind_the_end() -> None:
    """Work that ends just when its time does: what the watchdog raises comes within, or not at all."""

    def busy(seconds: float) -> None:
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            sum(range(50))

    def work(number: int) -> int:
        ended = 0
        for turn in range(12):
            try:
                run_limited(partial(busy, TICK + (number * 12 + turn) * 1e-4), 1e-9)
            except OutOfTime:
                ended += 1
            assert not is_limited()
            busy(0.004)  # in which a late one would come
        return ended

    assert sum(result for result, _ in in_threads(work)) > 0


def test_nothing_is_raised_where_it_would_be_lost() -> None:
    """In callbacks of the garbage collector, where these take half of the time."""
    program = f"""
import gc, threading, time
from newskills_math import compare
def slowly(phase, info):
    until = time.thread_time() + share
    while time.thread_time() < until:
        sum(range(50))
share = 0.0
gc.callbacks.append(slowly)
def work():
    for _ in range(2):
        print(compare({SUMS!r}, {SUMS.replace("n^2", "2n^2")!r}, seconds=0.1).reason)
compare("1/2+x", "x+1/3")
share = 0.02
gc.set_threshold(500)
thread = threading.Thread(target=work)
thread.start()
thread.join()
gc.callbacks.clear()
"""
    assert in_python(program) == "no time left in step value\n" * 2


def test_the_step_is_named_and_what_is_for_free_costs_nothing() -> None:
    def stepping() -> None:
        with name_step("search"):
            spin()

    def free(_number: int) -> str:
        def busy() -> str:
            until = time.thread_time() + 3 * TICK
            while time.thread_time() < until:
                sum(range(1_000))
            return "done"

        return run_limited(lambda: for_free(busy), TICK)

    def named(_number: int) -> str:
        with pytest.raises(OutOfTime) as ended:
            run_limited(stepping, 0.05)
        return ended.value.step

    assert {result for result, _ in in_threads(named)} == {"search"}
    assert {result for result, _ in in_threads(free)} == {"done"}


def test_no_signal_is_used_not_even_in_the_main_thread() -> None:
    program = f"""
import signal, threading
signal.signal = signal.setitimer = signal.alarm = None
from newskills_math import compare
print(compare({SUMS!r}, {SUMS.replace("n^2", "2n^2")!r}, seconds=0.1).reason)
"""
    assert in_python(program) == "no time left in step value\n"


def test_the_watchdog_ends_when_nobody_needs_it() -> None:
    program = f"""
import threading, time
from newskills_math import compare
from newskills_math.values import deadline
deadline.IDLE_TICKS = 1
for _ in range(2):
    print(compare({SUMS!r}, {SUMS.replace("n^2", "2n^2")!r}, seconds=0.1).reason)
    while threading.active_count() > 1:
        time.sleep(0.01)
"""
    assert in_python(program) == "no time left in step value\n" * 2


def test_a_fork_beside_a_thread_that_computes_begins_anew() -> None:
    program = f"""
import os, threading, time, warnings
from newskills_math import compare
from newskills_math.values import deadline
warnings.simplefilter("ignore", DeprecationWarning)
thread = threading.Thread(target=compare, args=({SUMS!r}, {SUMS.replace("n^2", "2n^2")!r}))
thread.start()
while not deadline._STATE.lock.locked():
    time.sleep(0.001)
child = os.fork()
if child == 0:
    print(compare({SUMS!r}, {SUMS.replace("n^2", "3n^2")!r}, seconds=0.1).reason, flush=True)
    os._exit(0)
os.waitpid(child, 0)
thread.join()
"""
    assert in_python(program) == "no time left in step value\n"


def test_threads_that_have_ended_are_no_longer_watched() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run_limited, lambda: 7, 5.0).result() == 7
    assert deadline._STATE.watched is None
