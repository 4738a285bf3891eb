# SPDX-License-Identifier: Apache-2.0
"""Runs unit tests in the judge's process against an answer that lives in another one. Sent into the sandbox as text.

Nothing of the tests is where the answer could look: calls, attributes and items of its objects are asked for, and plain
data comes back. What a call has changed of the data that it was given is changed here, too.
"""

from __future__ import annotations

import unittest

from newskills.graders.code.inside.judge import CandidateGone, Link, missing_name
from newskills.graders.code.inside.testcases import TESTS_FILE, TestRunner, error_verdict, missing_modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def judge_unit(task: dict[str, Any], link: Link) -> dict[str, Any]:
    """Return `kind`, `text`, `ran` (names of passed tests), `passed` (of classes), `notes`.

    `kind` is `unfit` where the tests hand over what cannot travel: that is not the answer's doing.
    """
    if missing := missing_modules(task["needs"]):
        return {"kind": "missing", "text": ", ".join(missing)}
    unit = _Unit(task, link)
    try:
        verdict = unit.run()
    except CandidateGone:
        verdict = {}
    except BaseException as error:  # noqa: BLE001 - whatever the answer or the tests raise
        verdict = error_verdict("exception", error)
    if link.unfit:
        verdict = {"kind": "unfit", "text": link.unfit}
    elif link.gone is not None and "passed" not in verdict:
        kind = "timeout" if link.gone.kind == "timeout" else "ended"
        verdict = {"kind": kind, "text": link.gone.text}
    return {"ran": unit.ran, "passed": {}, "notes": [], **verdict}


class _Unit:
    def __init__(self, task: dict[str, Any], link: Link) -> None:
        self._task, self._link = task, link
        link.carries_changes = True
        self.ran: list[str] = []
        self._space: dict[str, Any] = {"__name__": "__test__", "__file__": TESTS_FILE}

    def run(self) -> dict[str, Any]:
        """Run the tests and return what came of them. Raises what the tests raise, CandidateGone."""
        exec(_compile_tests(self._task["imports"]), self._space)  # noqa: S102 - the benchmark's own text
        tests = _compile_tests(self._task["tests"])
        try:
            self._load_answer()
        except Exception as error:  # noqa: BLE001 - whatever the code raises is its verdict
            return {"kind": "load", "text": getattr(error, "remote", "unreadable reply")}
        before = dict(self._space)
        exec(tests, self._space)  # noqa: S102
        runner = TestRunner(unittest, self.ran.append)
        if self._task["classes"]:
            classes = {name: self._space.get(name, object) for name in self._task["classes"]}
            return runner.run_classes(classes, self._task["each"], self._begin_class)
        return runner.run_all([value for name, value in self._space.items() if before.get(name) is not value])

    def _load_answer(self) -> None:
        names = self._task["names"]
        loaded = self._link.ask("load", "", self._task["code"], "", names)
        for name in names:
            self._space[name] = loaded[name] if name in loaded else missing_name(name)

    def _begin_class(self) -> None:
        """Make sure that a class finds an answer that listens, whatever became of it in the class before."""
        if not self._link.is_ready:
            self._link.restart()
            self._load_answer()


def _compile_tests(source: str) -> Any:
    return compile(source, TESTS_FILE, "exec", dont_inherit=True)
