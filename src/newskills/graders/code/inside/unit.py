# SPDX-License-Identifier: Apache-2.0
"""Runs code together with tests that reach into it (patches of its modules, its classes), in one process.

The verdict goes to a descriptor and under a mark that the code is not told of; the number of tests that must have
been passed is known outside. That withstands exits, prints and threads of the code, not an attack on its own
interpreter. The whole file is sent as a script.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import signal
import sys
import types
import unittest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MESSAGE = 300


def main() -> None:
    """Reads the task, tells `ready`, then the verdict: `kind`, `text`, `ran`."""
    task = json.loads(sys.stdin.buffer.read())
    out = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    write, mark, leave, dumps = os.write, task.pop("mark"), os._exit, json.dumps

    def tell(text: str) -> None:
        data = memoryview(f"\n{mark}{text}\n".encode())
        while data:
            data = data[write(out, data) :]

    tell("ready")
    place = os.environ.get("DATA_DIR", "/data")
    missing = [name for name in task["needs"] if not _there(name)]
    missing += [
        f"{name} in the data folder" for name in task["data"] if not os.path.isfile(os.path.join(place, name))
    ]
    if missing:
        tell(dumps({"kind": "missing", "text": ", ".join(missing), "ran": 0}))
        leave(0)
    resource.setrlimit(resource.RLIMIT_CPU, (task["cpu"], task["cpu"]))
    os.environ.update({"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"})
    verdict = run_pytest(task) if task["collect"] else judge(task)
    tell(dumps(verdict))
    leave(0)


def _there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def judge(task: dict[str, Any]) -> dict[str, Any]:
    """Runs `code`, then `tests`, in one module; then its test classes and `test…` functions."""
    module = types.ModuleType("__test__")
    sys.modules["__test__"] = module
    space = module.__dict__
    space["__file__"] = "answer.py"
    try:
        exec(compile(task["code"], "answer.py", "exec", dont_inherit=True), space)  # noqa: S102 - it is here for it
    except BaseException as error:  # noqa: BLE001 - whatever the code raises is its verdict
        return _verdict("load", error, 0)
    defined = {name: id(value) for name, value in space.items()}
    try:
        exec(compile(task["tests"], "tests.py", "exec", dont_inherit=True), space)  # noqa: S102
        if task["classes"]:
            return _run_classes(space, task["classes"], task["each"])
        if task["script"]:
            return {"kind": "passed", "text": "", "ran": 0}
        return _run(space, {name for name, original in defined.items() if id(space.get(name)) == original})
    except BaseException as error:  # noqa: BLE001 - whatever the tests raise, and the code that they call
        return _verdict("exception", error, 0)


def _run(space: dict[str, Any], answers: set[str]) -> dict[str, Any]:
    ran = 0
    for name, value in list(space.items()):
        if name in answers:
            continue
        if isinstance(value, type) and issubclass(value, unittest.TestCase):
            result = unittest.TestResult()
            unittest.defaultTestLoader.loadTestsFromTestCase(value).run(result)
            ran += result.testsRun
            bad = [*result.failures, *result.errors]
            if bad or result.unexpectedSuccesses:
                text = (
                    f"{bad[0][0].id().rpartition('.')[2]}: {bad[0][1].strip().splitlines()[-1]}" if bad else name
                )
                return {"kind": "failed", "text": text[:_MESSAGE], "ran": ran}
        elif name.startswith("test") and isinstance(value, types.FunctionType):
            value()
            ran += 1
    return {"kind": "passed", "text": "", "ran": ran}


class _LateError(BaseException):
    """Not an Exception, so that code which takes those goes on to nothing."""


def _run_classes(space: dict[str, Any], names: list[str], seconds: float) -> dict[str, Any]:
    """Each class by itself and within `seconds`: passed where it has tests and all of them do."""
    passed, ran, bad = {}, 0, []

    def late(*_: object) -> None:
        raise _LateError

    signal.signal(signal.SIGALRM, late)
    for name in names:
        result = unittest.TestResult()
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            unittest.defaultTestLoader.loadTestsFromTestCase(space[name]).run(result)
            passed[name] = bool(result.testsRun) and result.wasSuccessful()
        except BaseException:  # noqa: BLE001 - whatever the answer raises, and the signal
            passed[name] = False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        ran += result.testsRun
        bad += [] if passed[name] else [name]
    return {"kind": "failed" if bad else "passed", "text": ", ".join(bad)[:_MESSAGE], "ran": ran, "passed": passed}


def run_pytest(task: dict[str, Any]) -> dict[str, Any]:
    """The same by pytest, for tests that use its fixtures: answer and tests are one file."""
    import pytest

    class Counter:
        ran, bad = 0, ""

        def pytest_runtest_logreport(self, report: Any) -> None:
            self.ran += report.when == "call"
            if report.failed and not self.bad:
                self.bad = f"{report.nodeid.rpartition('::')[2]}: {str(report.longrepr).strip().splitlines()[-1]}"

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed and not self.bad:
                self.bad = str(report.longrepr).strip().splitlines()[-1]

    counter = Counter()
    with open("test_answer.py", "w", encoding="utf-8") as file:
        file.write(f"import pytest\n{task['code']}\n\n{task['tests']}\n")
    options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", os.getcwd(), "test_answer.py"]
    pytest.main(options, plugins=[counter])
    return {"kind": "failed" if counter.bad else "passed", "text": counter.bad[:_MESSAGE], "ran": counter.ran}


def _verdict(kind: str, error: BaseException, ran: int) -> dict[str, Any]:
    try:
        text = str(error)[:_MESSAGE]
    except BaseException:  # noqa: BLE001 - this is the code's, too
        text = ""
    return {"kind": kind, "text": f"{type(error).__name__}: {text}", "ran": ran}
