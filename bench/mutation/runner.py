# SPDX-License-Identifier: Apache-2.0
"""Runs pytest again and again, each time in a process forked from this one, which has imported what never changes.

A line on standard input is a JSON list of tests; the answer is pytest's exit code. Neither newskills nor a test is
imported here, so that each run reads the files as they are then.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import resource
import signal
import sys
import threading

import pytest

CPU_SECONDS, WALL_SECONDS = 120, 1800
"""Of one run; a mutant has been noticed where its tests need longer, for they go round in circles."""
_OPTIONS = ("-q", "-x", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
NEVER_CHANGES = ("hypothesis.strategies", "msgspec", "rich.console", "mpmath", "sqlite3", "asyncio", "http.client")


def preload() -> None:
    """Import pytest's plugins, and packages of others that most tests need."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        pytest.main(["--version", "--noconftest"])
    for name in NEVER_CHANGES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert not any(name.partition(".")[0] in ("newskills", "tests") for name in sys.modules)


def run(tests: list[str]) -> int:
    """The exit code of pytest in a child; that of a signal is negative."""
    child = os.fork()
    if not child:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nowhere, descriptor)
        code = int(pytest.ExitCode.INTERNAL_ERROR)
        with contextlib.suppress(BaseException):
            code = int(pytest.main([*_OPTIONS, *tests]))
        os._exit(code)
    watch = threading.Timer(WALL_SECONDS, os.killpg, (child, signal.SIGKILL))
    watch.start()
    try:
        _, status = os.waitpid(child, 0)
    finally:
        watch.cancel()
    return os.waitstatus_to_exitcode(status)


def main() -> None:
    preload()
    for line in sys.stdin:
        print(run(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
