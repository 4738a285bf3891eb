# SPDX-License-Identifier: Apache-2.0
"""Runs `unittest` classes and test functions one by one. Sent into the sandbox as text."""

from __future__ import annotations

import importlib.util
import signal
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TESTS_FILE = "tests.py"
_MESSAGE = 300


class TestRunner:
    """Tests that `tell` hears of by name once they have passed. `unittest` is the module whose classes they are."""

    def __init__(self, unittest: Any, tell: Callable[[str], None]) -> None:
        self._unittest, self._tell = unittest, tell
        self._count = 0

    def run_all(self, values: list[Any]) -> dict[str, Any]:
        """Run test classes and test functions among the values until one fails.

        Raises what a function, or a method of a class that is no TestCase, raises.
        """
        for value in values:
            if isinstance(value, type) and issubclass(value, self._unittest.TestCase):
                if bad := self.run_class(value):
                    return {"kind": "failed", "text": bad}
            elif _is_test(value):
                value()
                self._note_passed(value.__name__)
            elif isinstance(value, type) and value.__name__.startswith("Test"):
                for name in [name for name, each in vars(value).items() if _is_test(each)]:
                    getattr(value(), name)()
                    self._note_passed(f"{value.__name__}.{name}")
        return {"kind": "passed", "text": ""}

    def run_class(self, cls: type) -> str:
        """Run the tests of a class and return what failed."""
        result = _make_result(self._unittest, self._note_passed)
        self._unittest.defaultTestLoader.loadTestsFromTestCase(cls).run(result)
        return result.bad[0] if result.bad else ""

    def run_classes(
        self, classes: dict[str, type], seconds: float, begin: Callable[[], None] = lambda: None
    ) -> dict[str, Any]:
        """Run each class by itself and within `seconds`, after `begin`: passed where it has tests and all pass."""
        passed: dict[str, bool] = {}

        def late(*_: object) -> None:
            raise _LateError

        signal.signal(signal.SIGALRM, late)
        for name, cls in classes.items():
            count = self._count
            try:
                begin()
                signal.setitimer(signal.ITIMER_REAL, seconds)
                passed[name] = not self.run_class(cls) and self._count > count
            except BaseException:  # noqa: BLE001 - whatever the answer raises, and the signal
                passed[name] = False
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        bad = [name for name in classes if not passed[name]]
        kind = "failed" if bad else "passed"
        return {"kind": kind, "text": ", ".join(bad)[:_MESSAGE], "passed": passed}

    def _note_passed(self, name: str) -> None:
        self._tell(name)
        self._count += 1


class _LateError(BaseException):
    """Not an Exception, so that code which takes those goes on to nothing."""


def _is_test(value: Any) -> bool:
    """Return whether a value is a test function of the tests' own text."""
    if not isinstance(value, types.FunctionType) or not value.__name__.startswith("test"):
        return False
    return value.__code__.co_filename == TESTS_FILE


def _make_result(unittest: Any, tell: Callable[[str], None]) -> Any:
    """Return a result of the private `unittest` that counts a skip as a failure, unless the tests' text demands it."""

    class Result(unittest.TestResult):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.bad: list[str] = []

        def addSuccess(self, test: Any) -> None:  # noqa: N802
            tell(test.id().removeprefix("__test__."))

        addExpectedFailure = lambda self, test, error: self.addSuccess(test)  # noqa: E731, N815

        def addError(self, test: Any, error: Any) -> None:  # noqa: N802
            name = getattr(test, "_testMethodName", "") or str(test)
            self.bad.append(f"{name}: {tell_error(error[1])}"[:_MESSAGE])
            self.shouldStop = True

        addFailure = addError  # noqa: N815

        def addSubTest(self, test: Any, part: Any, error: Any) -> None:  # noqa: N802
            if error is not None:
                self.addError(test, error)

        def addSkip(self, test: Any, reason: Any) -> None:  # noqa: N802
            method = getattr(type(test), getattr(test, "_testMethodName", ""), None)
            if getattr(method, "__unittest_skip__", False) or getattr(type(test), "__unittest_skip__", False):
                self.addSuccess(test)
            else:
                self.bad.append(f"{getattr(test, '_testMethodName', test)}: skipped")

        def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
            self.bad.append(f"{test._testMethodName}: unexpected success")

    return Result()


def missing_modules(names: list[str]) -> list[str]:
    """Return the modules that are not here."""
    return [name for name in names if not _is_there(name)]


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def tell_error(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - this is the answer's code, too
        text = ""
    kind = type(error)
    home = ""
    if kind.__module__ not in ("builtins", "__test__"):
        home = f"{kind.__module__}."
    lines = text.strip().splitlines()
    last_line = lines[-1] if lines else ""
    return f"{home}{kind.__qualname__}: {last_line}".removesuffix(": ")


def error_verdict(kind: str, error: BaseException) -> dict[str, Any]:
    return {"kind": kind, "text": f"{type(error).__name__}: {tell_error(error).partition(': ')[2]}"[:_MESSAGE]}
