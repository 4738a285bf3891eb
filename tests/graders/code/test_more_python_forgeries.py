# SPDX-License-Identifier: Apache-2.0
"""A second round: wrong answers beside their tests and apart from them, and right ones of odd makes that must pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graders.code.more_forgeries import FUNCTIONS
from tests.graders.code.running_any import fenced, graded
from tests.graders.code.test_python_forgeries import FORGERIES as FIRST
from tests.graders.code.test_python_forgeries import HONEST, UNIT
from tests.night import NIGHTLY

from newskills.base.records import Row
from newskills.graders.code.plain import plain_tests

FORGERIES = {
    name: code
    for part in Path(__file__).with_name("more_forgeries.txt").read_text("utf-8").split("=== ")[1:]
    for name, _, code in (part.partition("\n"),)
}
"""Answers that square nothing and try to pass tests of a square; `expected` is what the tests call the square."""
PLAIN = (
    "import unittest\nclass TestCases(unittest.TestCase):\n"
    "    def test_one(self):\n        expected = 9\n        self.assertEqual(task_func(3), expected)\n"
    "    def test_two(self):\n        expected = 49\n        self.assertTrue(task_func(7) == expected)\n"
    "    def test_three(self):\n        expected = 4\n        self.assertAlmostEqual(task_func(2), expected)\n"
)
BARE = (
    "class TestIt:\n    def test_one(self):\n        expected = 9\n        assert task_func(3) == expected\n"
    "def test_two():\n    expected = 49\n    assert task_func(7) == expected\n"
)
FORMS: dict[str, tuple[str, Row, int]] = {
    "beside": ("code_tests", {"style": "unit", "test": UNIT}, 1),
    "apart": ("code_tests", {"style": "unit", "test": PLAIN}, 4),
    "pytest apart": ("code_tests", {"style": "pytest", "test": BARE}, 9),
    "classes apart": ("classeval", {"test": PLAIN, "test_classes": ["TestCases"]}, 9),
}
"""Grader, row, and how many of the forgeries there are for one that is run by day."""


@pytest.mark.parametrize("form", FORMS)
def test_wrong_answers_stay_wrong(form: str) -> None:
    grader, row, share = FORMS[form]
    every = FORGERIES if form == "beside" else FIRST | FORGERIES
    own = {name: code for name, code in every.items() if not name.startswith("tables: ")}
    codes = {"honest": HONEST} | dict(list(own.items())[:: 1 if NIGHTLY else share])
    scores = graded(grader, [{**row, "generation": fenced(code)} for code in codes.values()], timeout=5.0)
    outcomes = {name: (score.outcome, score.why) for name, score in zip(codes, scores, strict=True)}
    assert outcomes.pop("honest") == ("correct", "passed")
    assert {name: told for name, told in outcomes.items() if told[0] != "wrong"} == {}


HEAD = (
    "import unittest\nimport numpy as np\nimport pandas as pd\nclass TestCases(unittest.TestCase):\n"
    "    def test_one(self):\n        expected = 4.0\n        "
)
WEAK = {
    "np.testing.assert_array_equal(task_func(2)['a'], [4.0])": ("all is masked", "equal by what lies beneath"),
    "self.assertTrue(np.allclose(task_func(2)['a'], [4.0]))": (
        "nothing in a column",
        "equal by what lies beneath",
    ),
    "self.assertTrue(np.allclose(task_func(2), [4.0, 5.0]))": ("nothing equals all",),
    "self.assertTrue(np.all(task_func(2) == np.array([4.0])))": ("nothing equals all", "missing values"),
    "self.assertTrue((task_func(2) == np.array([4.0])).all())": ("memory by numpy's own",),
}
"""One assertion → forgeries of tables that passed it."""
HONEST_TABLES = (
    "import pandas as pd\ndef task_func(x):\n    return pd.DataFrame({'a': [float(x * x)]})",
    "import numpy as np\ndef task_func(x):\n    return {'a': np.array([x * x])}",
)


@pytest.mark.slow
def test_one_assertion_on_a_table_is_not_fooled() -> None:
    pytest.importorskip("pandas", reason="its tests need pandas")
    rows, wanted = [], []
    for assertion, names in WEAK.items():
        test = f"{HEAD}{assertion}\n"
        codes = [FORGERIES[f"tables: {name}"] for name in names]
        wanted += ["wrong"] * len(codes)
        if "['a']" in assertion:
            codes += HONEST_TABLES
            wanted += ["correct"] * len(HONEST_TABLES)
        rows += [{"style": "unit", "test": test, "generation": fenced(code)} for code in codes]
    scores = graded("code_tests", rows)
    assert [score.outcome for score in scores] == wanted, scores


SCIENCE = """
import numpy as np
def define_test_input(number):
    return np.array([1.0, 2.0, 3.0]) if number == 1 else np.array([4.0])
def exec_test(result, ans):
    try:
        np.testing.assert_allclose(result, ans)
        return 1
    except:
        return 0
exec_context = '''
import numpy as np
a = test_input
[insert]
'''
def test_execution(solution):
    for number in (1, 2):
        test_input = define_test_input(number)
        expected_result = test_input * 2
        test_env = {"test_input": test_input}
        exec(exec_context.replace("[insert]", solution), test_env)
        assert exec_test(test_env["result"], expected_result)
test_execution(answer)
"""
SCIENCE_ANSWERS = {
    "result = a * 2": "correct",
    "from scipy import stats\nresult = a + a": "correct",
    "result = np.empty((0, 1))": "wrong",
    "result = np.ma.masked_all(a.shape)": "wrong",
    "np.testing.assert_allclose = lambda *a, **k: None\nresult = 0": "wrong",
    "old = np.testing.assert_allclose\ndef once(*a, **k):\n    np.testing.assert_allclose = old\n"
    "np.testing.assert_allclose = once\nresult = 0": "wrong",
}


def test_programs_of_science_are_not_fooled() -> None:
    pytest.importorskip("scipy", reason="an answer needs it")
    rows = [{"style": "script", "test": SCIENCE, "generation": fenced(code)} for code in SCIENCE_ANSWERS]
    scores = graded("code_tests", rows, preload=("numpy",))
    assert [score.outcome for score in scores] == list(SCIENCE_ANSWERS.values()), scores


ASSERTS = ["assert f(3) == 9", "assert f(2) == 4", "assert abs(f(1) - 1) < 1e-6"]
CHECK = (
    "def check(f):\n    import numpy as np\n    assert np.allclose(f(3), 9.0)\n"
    "    np.testing.assert_allclose(f(2), 4)\n"
)


@pytest.mark.parametrize("tests", [{"test_list": ASSERTS}, {"test": CHECK}], ids=["plain", "numpy"])
def test_functions_are_not_fooled(tests: Row) -> None:
    if "test" in tests:
        pytest.importorskip("numpy", reason="its tests need numpy")
    codes = {"honest": "def f(x):\n    return x * x", **FUNCTIONS}
    rows = [{"entry_point": "f", "prompt": "", **tests, "generation": fenced(code)} for code in codes.values()]
    outcomes = dict(zip(codes, graded("evalplus", rows, timeout=1.0), strict=True))
    assert outcomes.pop("honest").outcome == "correct"
    assert {name: score.why for name, score in outcomes.items() if score.outcome != "wrong"} == {}


SQUARES = {
    "a loop": "def task_func(x):\n    total = 0\n    for _ in range(x): total += x\n    return total",
    "words": "import sys\ndef task_func(x):\n    print('working')\n    print('x', file=sys.stderr)\n    return x ** 2",
    "a class": "class Square:\n    def __init__(self, x): self.x = x\n    def __int__(self): return self.x * self.x\n"
    "def task_func(x):\n    return int(Square(x))",
    "a data class": "from dataclasses import dataclass\n@dataclass(order=True)\nclass P:\n    x: int\n    @property\n"
    "    def square(self): return self.x * self.x\ndef task_func(x):\n    return P(x).square",
    "a coroutine": "import asyncio\nasync def later(x):\n    await asyncio.sleep(0)\n    return x * x\n"
    "def task_func(x):\n    return asyncio.run(later(x))",
    "a thread": "from concurrent.futures import ThreadPoolExecutor\ndef task_func(x):\n"
    "    with ThreadPoolExecutor(2) as pool: return pool.submit(pow, x, 2).result()",
    "a cache": "import functools\n@functools.lru_cache(maxsize=None)\ndef task_func(x):\n    return x * x",
    "a closure": "def times(y):\n    def by(x): return x * y\n    return by\ntask_func = lambda x: times(x)(x)",
    "a partial": "import functools\ndef power(n, x): return x ** n\ntask_func = functools.partial(power, 2)",
    "a callable object": "class F:\n    def __call__(self, x): return x * x\ntask_func = F()",
    "a bound method": "class F:\n    def square(self, x): return x * x\ntask_func = F().square",
    "a generator": "def odd(n):\n    for i in range(n): yield 2 * i + 1\ndef task_func(x):\n    return sum(odd(x))",
    "a kind of int": "class Amount(int):\n    pass\ndef task_func(x):\n    return Amount(x * x)",
    "an enum": "import enum\nclass N(enum.IntEnum):\n    NINE = 9\n    FOUR = 4\n    MANY = 49\n"
    "def task_func(x):\n    return N(x * x)",
    "a truth": "def task_func(x):\n    assert x is not None, 'no number'\n    return x * x + False",
    "a float": "def task_func(x):\n    return float(x * x)",
    "a fraction": "from fractions import Fraction\ndef task_func(x):\n    return Fraction(x * x * 3, 3)",
    "a decimal": "from decimal import Decimal\ndef task_func(x):\n    return Decimal(x) * x",
    "a file of its own": "import tempfile, os\ndef task_func(x):\n    with tempfile.TemporaryDirectory() as place:\n"
    "        path = os.path.join(place, 'n')\n        open(path, 'w').write(str(x * x))\n"
    "        return int(open(path).read())",
    "a slow one": "import time\ndef task_func(x):\n    time.sleep(.05)\n    return sum(x for _ in range(x))",
    "a main of its own": "import unittest\ndef task_func(x):\n    return x * x\nclass TestMine(unittest.TestCase):\n"
    "    def test_it(self): self.assertEqual(task_func(2), 4)\nif __name__ == '__main__':\n    unittest.main()",
    "a wrapped one": "import functools\ndef logged(f):\n    @functools.wraps(f)\n"
    "    def inner(*a, **k): return f(*a, **k)\n"
    "    return inner\n@logged\ndef task_func(x):\n    return x * x",
    "a recursion": "import sys\nsys.setrecursionlimit(5000)\ndef task_func(x, n=None):\n    n = x if n is None else n\n"
    "    return 0 if n == 0 else x + task_func(x, n - 1)",
    "another process": "import subprocess, sys\ndef task_func(x):\n"
    "    return int(subprocess.run([sys.executable, '-c', f'print({x} ** 2)'], capture_output=True, text=True).stdout)",
    "context and errors": "import contextlib\ndef task_func(x):\n    with contextlib.suppress(ZeroDivisionError):\n"
    "        x / 0\n    try:\n        return {}[x]\n    except KeyError:\n        return x * x",
}


@pytest.mark.parametrize("form", ["beside", "apart"])
def test_right_answers_of_all_makes_pass(form: str) -> None:
    grader, row, _ = FORMS[form]
    scores = graded(grader, [{**row, "generation": fenced(code)} for code in SQUARES.values()], timeout=10.0)
    outcomes = {name: (score.outcome, score.why) for name, score in zip(SQUARES, scores, strict=True)}
    assert {name: told for name, told in outcomes.items() if told[0] != "correct"} == {}
    assert not any("suspicious" in score.fields for score in scores)


BANK = """
class TooPoor(ValueError):
    pass

class Bank:
    def __init__(self, names=()):
        self.accounts = {name: 0 for name in names}
        self.log = []
    def pay(self, name, amount):
        if name not in self.accounts: raise KeyError(name)
        if self.accounts[name] + amount < 0: raise TooPoor(f"{name} has no {-amount}")
        self.accounts[name] += amount
        self.log.append((name, amount))
        return self.accounts[name]
    def names(self): return (name for name in self.accounts)
    @staticmethod
    def tidy(names): names.sort(); names[0] = names[0].upper()
    @classmethod
    def merged(cls, *banks): return cls(name for bank in banks for name in bank.names())
    def first(self): return next(iter(self.log), None)
    def __len__(self): return len(self.accounts)
    def __getitem__(self, name): return self.accounts[name]
"""
BANK_TESTS = """
import unittest

class TestPay(unittest.TestCase):
    def setUp(self):
        self.bank = Bank(["ann", "bob"])
    def test_pay(self):
        self.assertEqual(self.bank.pay("ann", 5), 5)
        self.assertEqual(self.bank["ann"], 5)
        self.assertEqual(self.bank.log, [("ann", 5)])
        self.assertEqual(self.bank.first(), ("ann", 5))
    def test_errors(self):
        with self.assertRaises(ValueError) as caught:
            self.bank.pay("bob", -1)
        self.assertEqual(str(caught.exception), "bob has no 1")
        self.assertRaises(KeyError, self.bank.pay, "eve", 1)
        self.assertIsNone(self.bank.first())

class TestNames(unittest.TestCase):
    def test_names(self):
        bank = Bank(["b", "a"])
        self.assertEqual(list(bank.names()), ["b", "a"])
        self.assertEqual(len(bank), 2)
        self.assertIsInstance(bank.accounts, dict)
        bank.accounts = {"c": 1}
        self.assertEqual(sorted(bank.names()), ["c"])
    def test_in_place(self):
        names = ["b", "a"]
        self.assertIsNone(Bank.tidy(names))
        self.assertEqual(names, ["A", "b"])
    def test_merged(self):
        for n in range(2):
            with self.subTest(n=n):
                self.assertEqual(list(Bank.merged(Bank(["a"]), Bank(["b"] * n)).names()), ["a"] + ["b"] * n)
"""


def test_classes_are_judged_apart_from_their_tests() -> None:
    """Also where the answer differs from the reference in its bones; a wrong method fails its own class only."""
    row: Row = {"test": BANK_TESTS, "test_classes": ["TestPay", "TestNames"], "canonical_solution": BANK}
    assert plain_tests(BANK_TESTS, "", "") is not None
    changes = {
        "": (True, True),
        "self.accounts[name] += amount\n": (False, True),
        "names.sort(); ": (True, False),
        "raise TooPoor": (False, True),
    }
    codes = [
        BANK.replace(change, "pass\n" if change.endswith("\n") else "") if change else BANK for change in changes
    ]
    codes[3] = BANK.replace("raise TooPoor", "raise RuntimeError")
    codes.append(BANK + "import os\nBank.pay = lambda *a: os._exit(0)\n")
    codes.append(BANK + "def wait(*a):\n    while True: pass\nBank.pay = wait\n")
    scores = graded("classeval", [{**row, "generation": fenced(code)} for code in codes], timeout=1.0)
    passed = [tuple(score.fields["test_classes_passed"].values()) for score in scores]
    assert passed == [*changes.values(), (False, True), (False, True)], scores


ALSO_PLAIN = [
    "def test_it():\n    assert f([1]) == [2]\n",
    "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(f(1), {'a': 2})\n",
    f"{PLAIN}\nif __name__ == '__main__':\n    unittest.main()\n",
]
NOT_PLAIN = [
    "import unittest\nfrom unittest.mock import patch\nclass T(unittest.TestCase):\n    @patch('m.f')\n"
    "    def test_it(self, m):\n        f(m)\n",
    "def test_it(capsys):\n    f(1)\n",
    "def test_it():\n    assert f(lambda x: x) == 2\n",
    "def test_it():\n    assert isinstance(f(1), Point)\n",
    "def test_it():\n    assert f(1) is f(1)\n",
    "def test_it():\n    f(1).items.append(2)\n",
    "import random\ndef test_it():\n    random.seed(1)\n    assert f(1) == 2\n",
    "import numpy as np\ndef test_it():\n    assert np.allclose(f(1), 2)\n",
    "class Mine(Base):\n    pass\ndef test_it():\n    assert f(Mine()) == 2\n",
    "def test_it():\n    with open('x') as file:\n        assert f(file.read()) == 2\n",
    "def test_it(:\n",
]


def test_tests_that_need_objects_are_told_from_plain_ones() -> None:
    assert all(plain_tests(text, "", "f") for text in ALSO_PLAIN)
    assert [text for text in NOT_PLAIN if plain_tests(text, "", "f")] == []
    assert plain_tests(ALSO_PLAIN[0], "import os\n", "f") is not None
    assert plain_tests(ALSO_PLAIN[0].replace("[2]", "os.sep"), "import os\n", "f") is None


@given(st.lists(st.integers(0, 3), max_size=3), st.integers(1, 4))
def test_nothing_is_close_to_nothing_only(shape: list[int], size: int) -> None:
    numpy = pytest.importorskip("numpy", reason="needs numpy")
    from newskills.graders.code.inside.near import differ_in_content

    array, full = numpy.zeros(shape), numpy.zeros(size)
    assert differ_in_content(array, full) == (0 in shape)
    assert differ_in_content(array.tolist(), full) == (0 in shape)
    assert not differ_in_content(array, array.copy())
    assert differ_in_content(numpy.ma.masked_all(size), full)
    assert not differ_in_content(full, numpy.ma.array(full))
