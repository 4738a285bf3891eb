# SPDX-License-Identifier: Apache-2.0
"""No program forges a verdict: wrong answers stay wrong whatever they do to what judges them."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
from tests.graders.code.running_any import fenced, graded
from tests.night import NIGHTLY, by_day

from newskills.base.records import Row
from newskills.graders.code.inside.equality import Rules
from newskills.graders.code.inside.private import World

FORGERIES = {
    name: code
    for part in Path(__file__).with_name("forgeries.txt").read_text("utf-8").split("=== ")[1:]
    for name, _, code in (part.partition("\n"),)
}
"""Answers that square nothing and try to pass tests of a square; `expected` is what the tests call the square."""
HONEST_TABLE = "import pandas as pd\ndef task_func(x):\n    return pd.DataFrame({'a': [x * x]})"
HONEST = "def task_func(x):\n    return x * x"
UNIT = (
    "import unittest\nfrom unittest.mock import patch\nclass TestCases(unittest.TestCase):\n"
    "    def test_one(self):\n        expected = 9\n        self.assertEqual(task_func(3), expected)\n"
    "    @patch('math.sqrt')\n    def test_two(self, root):\n        expected = 49\n"
    "        self.assertTrue(task_func(7) == expected)\n"
    "    def test_three(self):\n        expected = 4\n        self.assertAlmostEqual(task_func(2), expected)\n"
)
PYTEST = (
    "import math\ndef test_one():\n    expected = 9\n    assert task_func(3) == expected\n"
    "def test_two(capsys):\n    expected = 49\n    assert math.isclose(task_func(7), expected)\n"
)
SCRIPT = (
    "def run(text):\n    space = {'x': 3}\n    exec(text + '\\nresult = task_func(x)', space)\n"
    "    expected = 9\n    assert space['result'] == expected\nrun(answer)\n"
)
TABLES = (
    "import unittest\nimport numpy as np\nimport pandas as pd\nclass TestCases(unittest.TestCase):\n"
    "    def test_one(self):\n        result = task_func(3)\n        expected = pd.DataFrame({'a': [9]})\n"
    "        self.assertIsInstance(result, pd.DataFrame)\n        self.assertTrue(result.equals(expected))\n"
    "        pd.testing.assert_frame_equal(result, expected)\n"
    "    def test_two(self):\n        self.assertTrue(np.allclose(task_func(2)['a'], [4]))\n"
    "        np.testing.assert_allclose(task_func(2)['a'], [4])\n"
    "        self.assertEqual(task_func(2)['a'].tolist(), [4])\n"
)
WEAK_TABLES = (
    "import unittest\nimport numpy as np\nimport pandas as pd\nclass TestCases(unittest.TestCase):\n"
    "    def test_one(self):\n        self.assertTrue(task_func(3).equals(pd.DataFrame({'a': [9]})))\n"
    "    def test_two(self):\n        self.assertTrue(np.allclose(task_func(2), [4]))\n"
)
FORMS: dict[str, tuple[str, Row]] = {
    "bigcodebench": (
        "bigcodebench",
        {"test": UNIT, "code_prompt": "import math\ndef task_func(x):\n", "entry_point": "task_func"},
    ),
    "unit": ("code_tests", {"style": "unit", "test": UNIT}),
    "pytest": ("code_tests", {"style": "pytest", "test": PYTEST}),
    "script": ("code_tests", {"style": "script", "test": SCRIPT}),
    "tables": ("code_tests", {"style": "unit", "test": TABLES}),
    "one word of a table": ("code_tests", {"style": "unit", "test": WEAK_TABLES}),
    "classeval": ("classeval", {"test": UNIT, "test_classes": ["TestCases"], "test_setup_code": "import math"}),
}


def _own(form: str) -> dict[str, str]:
    """Return the forgeries for a form: those of `tables` need libraries, and pytest takes seconds to start."""
    own = {name: code for name, code in FORGERIES.items() if name.startswith("tables: ") == ("table" in form)}
    return dict(list(own.items())[:: 1 if form != "pytest" or NIGHTLY else 6])


@pytest.mark.parametrize("form", by_day(FORMS, {"bigcodebench", "unit"}))
def test_wrong_answers_stay_wrong(form: str) -> None:
    if "table" in form:
        pytest.importorskip("pandas", reason="its tests need pandas")
    grader, row = FORMS[form]
    codes = {"honest": HONEST_TABLE if "table" in form else HONEST, **_own(form)}
    scores = graded(grader, [{**row, "generation": fenced(code)} for code in codes.values()], timeout=5.0)
    outcomes = {name: (score.outcome, score.why) for name, score in zip(codes, scores, strict=True)}
    assert outcomes.pop("honest") == ("correct", "passed")
    assert {name: told for name, told in outcomes.items() if told[0] != "wrong"} == {}


CLASSES = """
import enum, threading, unittest, functools
from collections import OrderedDict, namedtuple, UserDict, defaultdict
from dataclasses import dataclass, field

@functools.total_ordering
class Point:
    def __init__(self, x, y): self.x, self.y = x, y
    def __eq__(self, other): return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)
    def __lt__(self, other): return (self.x, self.y) < (other.x, other.y)
    def __hash__(self): return hash((self.x, self.y))
    def __sub__(self, other): return Point(self.x - other.x, self.y - other.y)
    def __repr__(self): return f"Point({self.x}, {self.y})"

@dataclass(order=True)
class Item:
    name: str
    tags: list = field(default_factory=list)

Pair = namedtuple("Pair", "left right")

class Named(Pair):
    @property
    def both(self): return [self.left, self.right]

class Cache(OrderedDict):
    def get(self, key): return super().get(key, -1)
    def put(self, key, value): self[key] = value

class Box(UserDict):
    def __contains__(self, key): return str(key) in self.data
    def __setitem__(self, key, value): self.data[str(key)] = value

class Colour(str, enum.Enum):
    RED = "red"

class TooLarge(ValueError):
    def __init__(self, size):
        super().__init__(f"too large: {size}")
        self.size = size
    def __str__(self): return f"size {self.size}"

class Counter2:
    made = 0
    def __init__(self): type(self).made += 1
    def __len__(self): return 3
    def __bool__(self): return True
    def __iter__(self): return iter([1, 2, 3])
    def __getitem__(self, at): return [1, 2, 3][at]
    def __getattr__(self, name): return name
    def __call__(self): return self

def squares(n):
    print("working")
    for i in range(n): yield i * i

def check(size):
    if size > 3: raise TooLarge(size)
    return defaultdict(int, {"size": size})

def started():
    found = []
    t = threading.Thread(target=found.append, args=(1,))
    t.start(); t.join()
    return found

class TestMine(unittest.TestCase):
    def test_own(self): self.assertEqual(Point(1, 2), Point(1, 2))

if __name__ == "__main__":
    unittest.main()
"""
USES = """
import unittest
from unittest.mock import ANY, call, mock_open, patch

class TestClasses(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.shared = Point(0, 0)
    def setUp(self): self.expected = Point(1, 2)
    def test_equal(self):
        self.assertEqual(Point(1, 2), self.expected)
        self.assertNotEqual(Point(2, 1), self.expected)
        self.assertNotEqual(self.expected, "a text")
        self.assertFalse(self.expected == 5)
        self.assertEqual(Point(3, 3) - Point(2, 1), self.expected)
        self.assertIn(Point(1, 2), [self.expected, self.shared])
        self.assertLess(Point(0, 1), self.expected)
        self.assertEqual(sorted([Point(2, 0), Point(1, 0)]), [Point(1, 0), Point(2, 0)])
        self.assertEqual({Point(1, 2): 1}, {self.expected: 1})
        self.assertTrue(0 <= Point(1, 2).x < 2)
    def test_data(self):
        self.assertEqual(Item("a", ["b"]), Item("a", ["b"]))
        self.assertLess(Item("a"), Item("b"))
        self.assertEqual(Pair(1, 2), (1, 2))
        self.assertEqual(Named(1, 2), (1, 2))
        self.assertEqual(Named(1, 2).both, [1, 2])
        self.assertEqual(Colour.RED, "red")
        self.assertEqual(Colour("red"), Colour.RED)
    def test_tables(self):
        cache = Cache()
        cache.put("a", 1)
        self.assertEqual((cache.get("a"), cache.get("b")), (1, -1))
        self.assertEqual(cache, {"a": 1})
        box = Box()
        box[1] = 2
        self.assertIn("1", box)
        self.assertEqual(box["1"], 2)
        counter = Counter2()
        self.assertEqual((len(counter), bool(counter), list(counter)), (3, True, [1, 2, 3]))
        self.assertEqual((counter[0], counter.any), (1, "any"))
        self.assertEqual(Counter2.made, 1)
    def test_errors(self):
        with self.assertRaises(ValueError) as caught: check(5)
        self.assertEqual(str(caught.exception), "size 5")
        self.assertEqual(caught.exception.size, 5)
        self.assertRaisesRegex(TooLarge, "size", check, 9)
        self.assertEqual(check(1), {"size": 1})
        self.assertIsInstance(check(1), dict)
    @patch("builtins.print")
    def test_mocks(self, say):
        self.assertEqual(list(squares(3)), [0, 1, 4])
        say.assert_called_once_with("working")
        self.assertEqual(say.call_args_list, [call("working")])
        self.assertEqual(say.call_args, call(ANY))
        self.assertEqual(say.call_args[0], ("working",))
        with patch("builtins.open", mock_open(read_data="x")):
            with open("no such file") as file: self.assertEqual(file.read(), "x")
    def test_subtests(self):
        for n in range(3):
            with self.subTest(n=n): self.assertEqual(list(squares(n)), [i * i for i in range(n)])
        self.assertEqual(started(), [1])
    @unittest.skip("for nobody")
    def test_skipped(self): self.fail()

class TestLater(unittest.IsolatedAsyncioTestCase):
    async def test_async(self): self.assertEqual(Point(1, 2).x, 1)
"""


def test_classes_that_say_what_they_equal_are_judged_as_before() -> None:
    row = {"style": "unit", "test": USES, "generation": fenced(CLASSES)}
    spoilt = [("self.x - other.x", "0"), ("return super().get(key, -1)", "return -1"), ("i * i", "i")]
    rows = [row, *({**row, "generation": fenced(CLASSES.replace(*change))} for change in spoilt)]
    right, *wrong = graded("code_tests", rows)
    assert (right.outcome, right.why) == ("correct", "passed")
    assert [score.outcome for score in wrong] == ["wrong"] * len(spoilt)


def test_what_a_program_tries_stands_in_its_record() -> None:
    codes = {
        HONEST: "",
        FORGERIES["skip in the call"]: "skips tests",
        FORGERIES["assertEqual"]: "patches unittest",
        FORGERIES["names of Python"]: "patches builtins",
        FORGERIES["values in the frame above"]: "looks at frames",
        "def task_func(x):\n    return len(open(__file__).read())": "reads its own file",
    }
    grader, row = FORMS["bigcodebench"]
    scores = graded(grader, [{**row, "generation": fenced(code)} for code in codes])
    for score, word in zip(scores, codes.values(), strict=True):
        assert word in score.fields.get("suspicious", ""), score
    assert "suspicious" not in scores[0].fields


def test_the_answer_cannot_read_the_targets_of_steps(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(tmp_path / "test_data.h5", "w") as file:
        file["1.1/test1/var1"] = 4
    tmp_path.chmod(0o755)
    (tmp_path / "test_data.h5").chmod(0o644)
    step = {"step_number": "1.1", "test_cases": ["assert twice(2) == target"]}
    row: Row = {"generation": "…", "required_dependencies": "import numpy as np", "sub_steps": [step]}
    place = "__import__('os').environ['DATA_DIR'] + '/test_data.h5'"
    codes = {
        "def twice(x):\n    return 2 * x": "correct",
        f"def twice(x):\n    return __import__('h5py').File({place})['1.1/test1/var1'][()]": "wrong",
        f"def twice(x):\n    return open({place}, 'rb').read()": "wrong",
        f"def twice(x):\n    return __import__('subprocess').check_output(['cat', {place}])": "wrong",
        "def twice(x):\n    m = __import__('sys').modules\n    for n in ('scicode.compare.cmp', '__test__'):\n"
        "        for value in vars(m[n]).get('_targets', []): return value": "wrong",
        "class Yes(int):\n    def __eq__(self, other): return True\ndef twice(x):\n    return Yes(0)": "wrong",
    }
    scores = graded("scicode", [{**row, "steps": {"1.1": code}} for code in codes], tmp_path)
    assert [score.outcome for score in scores] == list(codes.values()), scores


def test_an_attribute_of_a_value_of_pythons_library_costs_a_test_few_steps() -> None:
    """A server of the answer's goes on between two steps of a test: with thousands more it saw another order."""
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    rules = Rules(World(), may_approximate=False)
    with socket.socket() as client:
        sys.setprofile(count)
        try:
            assert rules.value(client, "close") is client
        finally:
            sys.setprofile(None)
    assert steps < 500
