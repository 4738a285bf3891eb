# SPDX-License-Identifier: Apache-2.0
"""The process that holds answer and tests together: it makes the tests' world, loads the answer, runs the tests.

What it tells is believed by the judge for its token and the names of the tests that passed; the tests that must pass
are known outside of the sandbox.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import os
import re
import resource
import sys
import types

from newskills.graders.code.inside.equality import Rules
from newskills.graders.code.inside.private import ANSWER_FILE, World
from newskills.graders.code.inside.rewriting import imports, rewritten
from newskills.graders.code.inside.testcases import TESTS_FILE, TestRunner, error_verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_MESSAGE = 300
_PYTEST = ("pytest", "_pytest", "pluggy")
_MODULE_NAMES = ("__name__", "__file__", "__builtins__")
_IMPORT_LINE = re.compile(r"^[ \t]*(?:import|from)[ \t].+$", re.MULTILINE)
_NOT_BEFORE = ("ctypes", "unittest")
_PREPARED = ("scicode",)
"""Packages that a benchmark's prelude installs for its tests."""


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Return `kind`, `text`, `ran` (names of passed tests), `passed` (of classes), `notes`."""
    resource.setrlimit(resource.RLIMIT_CPU, (task["cpu"], task["cpu"]))
    os.environ.update({"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"})
    trial = _Trial(task)
    try:
        verdict = trial.run()
    except BaseException as error:  # noqa: BLE001 - whatever the answer or the tests raise
        verdict = error_verdict("exception", error)
    if trial.world.broken:
        verdict |= {"kind": "tampered", "text": trial.world.broken}
    return {"ran": trial.ran, "passed": {}, **verdict, "notes": list(trial.world.notes)}


class _Trial:
    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task
        self.ran: list[str] = []
        self.world = World()
        self.world.is_open_to_libraries = bool(task["collect"])
        self.world.builtins["exec"] = self.exec_
        self.tests = self.world.make_tests_space(__name__="__test__", __file__=TESTS_FILE)
        self.rules = Rules(self.world, may_approximate="approx" in task["tests"])
        self.unittest = self.world.load("unittest")

    def run(self) -> dict[str, Any]:
        """Run the tests on the answer and return what came of them. Raises whatever the answer and the tests raise."""
        task = self.task
        head_imports = [each for text in (task["head"], task["prelude"]) for each in _imports_of_text(text)]
        tree = rewritten(task["tests"], head_imports)
        self._prepare_imports([module for _, module in head_imports], tree)
        exec(compile(task["prelude"], TESTS_FILE, "exec", dont_inherit=True), self.tests)  # noqa: S102
        for name in [each for each in sys.modules if each.partition(".")[0] in _PREPARED]:
            self.world.take(name)
        if task["collect"]:
            return self._run_pytest(ast.unparse(tree))
        if unfit := self.load():
            return unfit
        before = dict(self.tests)
        exec(compile(tree, TESTS_FILE, "exec", dont_inherit=True), self.tests)  # noqa: S102
        self.world.check()
        if task["script"]:
            return {"kind": "passed", "text": ""}
        runner = TestRunner(self.unittest, self._note_passed)
        if task["classes"]:
            return runner.run_classes(
                {name: self.tests.get(name, object) for name in task["classes"]}, task["each"]
            )
        return runner.run_all([value for name, value in self.tests.items() if before.get(name) is not value])

    def load(self) -> dict[str, Any]:
        """Close the tests' world, load the answer and hand its names to the tests; return why that cannot be."""
        self._hide_tests()
        answer = self._load_answer()
        if isinstance(answer, dict):
            return answer
        self._fill_test_names(answer)
        self.rules.own = {
            value
            for name in _called_names(ast.parse(self.task["tests"]))
            if isinstance(value := vars(answer).get(name), type) and f"def {name}(" not in self.task["head"]
        }
        if self.world.broken:
            return {"kind": "tampered", "text": ""}
        return {}

    def _prepare_imports(self, names: list[str], tree: ast.AST) -> None:
        """Import what the tests use, before the answer could change it, and remember it."""
        names += [module for _, module in imports(tree)]
        if self.task["collect"]:
            names += _PYTEST
        for name in dict.fromkeys(names):
            own = name.partition(".")[0] == "unittest"
            load = self.world.load if own else importlib.import_module
            _attempt_step(load, name)
        for name, module in imports(tree):
            _load_parts(name, sys.modules.get(module), tree)
        for text in (self.task["code"], self.task["tests"]):  # some need ctypes, which is not here later
            for statement in _all_imports(text):
                if all(module.partition(".")[0] not in _NOT_BEFORE for _, module in imports(statement)):
                    _attempt_step(exec, compile(statement, TESTS_FILE, "exec"), {})
        if "mock" in self.task["tests"]:
            self.rules.guard_calls(self.world.load("unittest.mock"))
        self._names = names

    def _hide_tests(self) -> None:
        for name in [each for each in sys.modules if each.startswith("newskills.")]:
            self.world.take(name)
        vars(sys.modules["__main__"]).clear()
        hidden = ["h5py"] if self.task["data"] else []
        if "ctypes" not in self.task["tests"] + self.task["head"]:
            hidden += ["ctypes", "_ctypes"]
        self.world.hide(self.task["data"], hidden)
        self.world.remember(self._names)

    def _load_answer(self) -> types.ModuleType | dict[str, Any]:
        """Return the answer's module, or the verdict where it cannot be loaded."""
        module = sys.modules["__test__"] = types.ModuleType("__test__")
        vars(module).update(__file__=ANSWER_FILE, __builtins__=builtins.__dict__)
        try:
            program = compile(self.task["code"], ANSWER_FILE, "exec", dont_inherit=True)
            self.world.loaded = True
            exec(program, vars(module))  # noqa: S102 - this process is here for it
        except BaseException as error:  # noqa: BLE001 - whatever the code raises is its verdict
            return error_verdict("load", error)
        self.world.check()
        return module

    def _fill_test_names(self, answer: types.ModuleType) -> None:
        """Give the tests the answer's names, but those of Python's own and of the benchmark's imports from there."""
        for name, value in list(vars(answer).items()):
            if not name.startswith("__") and (name not in self.world.builtins or name == self.task["entry"]):
                self.tests[name] = value
        for statement in _import_statements(self.task["head"]):
            _attempt_step(exec, compile(statement, TESTS_FILE, "exec"), self.tests)
        self.tests |= self.rules.names()
        for statement in _import_statements(self.task["tests"]):  # some solutions rely on these
            if all(module.partition(".")[0] != "unittest" for _, module in imports(statement)):
                _attempt_step(exec, compile(statement, TESTS_FILE, "exec"), vars(answer))

    def exec_(self, source: Any, space: Any = None, *rest: Any) -> None:
        """Run the answer for tests that do so themselves, with Python's builtins and not the tests'."""
        if space is None:
            space = {}
        space["__builtins__"] = builtins.__dict__
        if isinstance(source, str):
            program = compile(source, ANSWER_FILE, "exec", dont_inherit=True)
        else:
            program = source
        exec(program, space, *rest)  # noqa: S102
        self.world.check()
        if self.world.broken:
            raise RuntimeError(self.world.broken)

    def _note_passed(self, name: str) -> None:
        self.world.check()
        if self.world.broken:
            raise RuntimeError(self.world.broken)
        self.ran.append(name)

    # ---- pytest ----

    def _run_pytest(self, tests: str) -> dict[str, Any]:
        """Run the tests by pytest, for those that use its fixtures. Their file is gone before they run."""
        import pytest

        path = os.path.abspath("test_answer.py")
        counter = _Counter(self, path, tests)
        with open(path, "w", encoding="utf-8"):
            options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", os.getcwd(), path]
        pytest.main(options, plugins=[counter])
        if counter.unfit:
            return counter.unfit
        kind = "failed" if counter.bad else "passed"
        return {"kind": kind, "text": counter.bad[:_MESSAGE]}


class _Counter:
    """A plugin of pytest that loads the answer once pytest is set up, and counts what passed."""

    def __init__(self, trial: _Trial, path: str, tests: str) -> None:
        self._trial, self._path, self._tests = trial, path, tests
        self.bad = ""
        self.unfit: dict[str, Any] = {}

    def pytest_collection(self, session: Any) -> None:
        self.unfit = self._trial.load()
        if self.unfit:
            return
        module = sys.modules["__given__"] = types.ModuleType("__given__")
        kept = {name: value for name, value in self._trial.tests.items() if name not in _MODULE_NAMES}
        vars(module).update(kept, __all__=list(kept))
        with open(self._path, "w", encoding="utf-8") as file:
            file.write(f"from __given__ import *\nimport pytest\n{self._tests}\n")

    def pytest_collection_finish(self, session: Any) -> None:
        os.unlink(self._path)
        sys.modules.pop("__given__", None)
        for item in session.items:
            self._trial.world.adopt_globals(vars(item.module))

    def pytest_runtest_logreport(self, report: Any) -> None:
        name = ".".join(report.nodeid.partition("[")[0].split("::")[1:])
        if report.outcome != "passed" and not self.bad:
            self.bad = f"{name.rpartition('.')[2]}: {str(report.longrepr).strip().splitlines()[-1]}"
        elif report.when == "call" and report.outcome == "passed":
            self._trial.world.check()
            self._trial.ran.append(name)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.bad:
            self.bad = str(report.longrepr).strip().splitlines()[-1]


def _attempt_step(step: Callable[..., object], *arguments: Any) -> None:
    """Take a step that a library may fail in any way: who needs what it brings fails then, too."""
    try:
        step(*arguments)
    except Exception:  # noqa: BLE001 - a library's import may raise anything
        return


def _load_parts(name: str, module: Any, tree: ast.AST) -> None:
    """Load what tests take from a module that loads its parts when they are asked for first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            _attempt_step(getattr, module, node.attr)


def _called_names(tree: ast.AST) -> set[str]:
    """Return names that the tests call and do not give to anything themselves."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    called = {
        node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    return called - {node.id for node in names if isinstance(node.ctx, ast.Store)}


def _imports_of_text(text: str) -> list[tuple[str, str]]:
    return [each for statement in _import_statements(text) for each in imports(statement)]


def _all_imports(text: str) -> Iterable[ast.Module]:
    """Yield the imports anywhere in a text, and in programs that it holds as texts."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and getattr(node, "module", "") != "__future__":
            yield ast.Module([node], [])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "import " in node.value:
            for line in _IMPORT_LINE.findall(node.value):
                yield from _import_statements(line.strip())


def _import_statements(text: str) -> Iterable[ast.Module]:
    """Yield the imports at the top of a text; of one that ends in the head of a function, too."""
    for source in (text, f"{text}    pass\n"):
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom) and getattr(node, "module", "") != "__future__":
                yield ast.Module([node], [])
        return
