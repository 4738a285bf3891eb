# SPDX-License-Identifier: Apache-2.0
"""Invented tasks in EvalPlus' form, with names of those that it compares otherwise than by `==`, and wrong programs."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

_PER_TASK = 20


class Task(NamedTuple):
    """`dataset` is EvalPlus' name of it; the inputs are lists of arguments."""

    dataset: str
    entry: str
    code: str
    base: list[list[Any]]
    plus: list[list[Any]]
    atol: float = 0.0


TASKS = (
    Task("mbpp", "similar_elements", "def similar_elements(a, b):\n    return tuple(set(a) & set(b))",
         [[(3, 4, 5), (5, 7, 4)]], [[(1, 2), (3,)], [(1, 1, 2), (1, 2, 2)]]),
    Task("mbpp", "sum_div", "def sum_div(n):\n    return sum(d for d in range(1, n) if n % d == 0)",
         [[8], [12]], [[7], [1], [28]]),
    Task("mbpp", "surface_Area", "def surface_Area(b, h):\n    return round(b * b + b * (b * b + 4 * h * h) ** 0.5)",
         [[3, 4], [4, 5]], [[1, 2], [10, 3]]),
    Task("mbpp", "digit_distance_nums", "def digit_distance_nums(a, b):\n    return sum(map(int, str(abs(a - b))))",
         [[1, 2], [23, 56]], [[123, 256], [9, 10]]),
    Task("mbpp", "check_str", "import re\n\ndef check_str(text):\n    return re.match('[aeiou]', text)",
         [["annie"], ["dawood"]], [[""], ["Else"], ["u"]]),
    Task("mbpp", "are_equivalent", "def are_equivalent(a, b):\n    return sum(range(a)) == sum(range(b))",
         [[36, 57], [2, 4]], [[23, 47], [5, 5]]),
    Task("mbpp", "median_of", "def median_of(items):\n    items = sorted(items)\n    half = len(items) // 2\n"
         "    return items[half] if len(items) % 2 else (items[half - 1] + items[half]) / 2",
         [[[3, 1, 2]], [[4, 1, 2, 3]]], [[[1.5]], [[2, 2]], [[9, -1, 4, 4, 0]]]),
    Task("mbpp", "share_of", "def share_of(part, whole):\n    return part / whole if whole else 0.0",
         [[1, 4], [1, 3]], [[0, 5], [2, 0], [7, 9]]),
    Task("mbpp", "shares", "def shares(items):\n    total = sum(items)\n    return [item / total for item in items]",
         [[[1, 1]], [[1, 2, 3]]], [[[5]], [[2, 7, 1]]]),
    Task("mbpp", "without_twice", "def without_twice(items):\n    kept = []\n    for item in items:\n"
         "        if item not in kept:\n            kept.append(item)\n    return kept",
         [[[1, 2, 1]], [[3, 3]]], [[[]], [["a", "b", "a"]], [[1, True, 2]]]),
    Task("mbpp", "smallest_left", "def smallest_left(items):\n    items = list(items)\n    items.remove(min(items))\n"
         "    return items", [[[3, 1, 2]], [[5, 5]]], [[[1]], [[-2, 7, -2, 0]]]),
    Task("mbpp", "count_words", "def count_words(text):\n    counts = {}\n    for word in text.split():\n"
         "        counts[word] = counts.get(word, 0) + 1\n    return counts",
         [["a b a"], ["x"]], [[""], ["A a A"]]),
    Task("mbpp", "is_even_length", "def is_even_length(text):\n    return len(text) % 2 == 0",
         [["ab"], ["abc"]], [[""], ["four"]]),
    Task("humaneval", "find_zero", "def find_zero(xs):\n    low, high = -1000.0, 1000.0\n"
         "    at = lambda x: sum(c * x ** i for i, c in enumerate(xs))\n    for _ in range(200):\n"
         "        middle = (low + high) / 2\n        if at(low) * at(middle) <= 0:\n            high = middle\n"
         "        else:\n            low = middle\n    return low",
         [[[1, 2]], [[-6, 11, -6, 1]]], [[[0, 1]], [[4, -2]]], 1e-4),
    Task("humaneval", "longest_word", "def longest_word(words):\n    best = ''\n    for word in words:\n"
         "        if len(word) > len(best):\n            best = word\n    return best",
         [[["a", "bb"]], [["one", "two"]]], [[[]], [["x", "yy", "zz"]]]),
    Task("humaneval", "rotated", "def rotated(items, k):\n    if not items:\n        return items\n"
         "    k = k % len(items)\n    return items[-k:] + items[:-k] if k else items",
         [[[1, 2, 3], 1], [[1, 2], 2]], [[[], 3], [[1, 2, 3, 4], 5], [[1, 2, 3], -1]]),
    Task("humaneval", "primes_below", "def primes_below(n):\n    found = []\n    for number in range(2, n):\n"
         "        if all(number % prime != 0 for prime in found):\n            found.append(number)\n    return found",
         [[10], [2]], [[0], [30], [3]]),
    Task("humaneval", "running_mean", "def running_mean(items):\n    total, means = 0, []\n"
         "    for place, item in enumerate(items):\n        total += item\n        means.append(total / (place + 1))\n"
         "    return means", [[[1, 2, 3]], [[4]]], [[[]], [[1, 1, 2]], [[0.1, 0.2]]]),
    Task("humaneval", "balanced", "def balanced(text):\n    depth = 0\n    for char in text:\n"
         "        depth += 1 if char == '(' else -1\n        if depth < 0:\n            return False\n"
         "    return depth == 0", [["()"], ["(()"]], [[")("], [""], ["(())()"]]),
    Task("humaneval", "first_and_last", "def first_and_last(items):\n    if len(items) == 0:\n        return None\n"
         "    return (items[0], items[-1])", [[[1, 2, 3]], [[5]]], [[[]], [["a", "b"]]]),
    Task("humaneval", "hypotenuse", "def hypotenuse(a, b):\n    return (a * a + b * b) ** 0.5",
         [[3, 4], [1, 1]], [[0, 0], [2.5, 1]], 1e-6),
    Task("humaneval", "sorted_by_digits", "def sorted_by_digits(numbers):\n"
         "    return sorted(numbers, key=lambda number: sum(int(digit) for digit in str(abs(number))))",
         [[[12, 3, 30]], [[1]]], [[[]], [[99, 100, -5]]]),
    Task("humaneval", "depth_of", "def depth_of(value):\n    if not isinstance(value, list):\n        return 0\n"
         "    return 1 + max([depth_of(item) for item in value], default=0)",
         [[[1, [2]]], [5]], [[[]], [[[[1]], 2]]]),
)  # fmt: skip

_RESULTS = (
    "value",
    "float(value) if type(value) is int else value",
    "int(value) if type(value) in (bool, float) else value",
    "value + 1e-8 if type(value) is float else value",
    "value + 1e-3 if type(value) is float else value",
    "[x + 1e-8 if type(x) is float else x for x in value] if type(value) is list else value",
    "tuple(value) if type(value) is list else value",
    "list(value) if type(value) is tuple else value",
    "set(value) if type(value) is list else value",
    "sorted(value) if type(value) is list else value",
    "str(value)",
    "value or None",
    "[value]",
    "iter(value) if type(value) is list else value",
    "value + 1 if type(value) in (int, float) else value",
    "not value if type(value) is bool else value",
    "None",
    "value if value else 1 / 0",
    "(print(value), value)[1]",
    "(value, [a.reverse() for a in arguments if type(a) is list])[0]",
    "(value, [a.clear() for a in arguments if type(a) is list])[0]",
)
_WHOLE = (
    "def {entry}(*arguments)\n    return 1",
    "def other(*arguments):\n    return 1",
    "raise ValueError('not today')",
    "{code}\nassert {entry} is None",
    "import sys\n\ndef {entry}(*arguments):\n    sys.exit(0)",
    "{code}\nprint('ready')",
    "def {entry}(*arguments):\n    pass",
    "{entry} = lambda *arguments: 0",
    "class Solution:\n    pass\n\n{code}",
    "def {entry}(*arguments):\n    return {entry}(*arguments)",
)


def programs(task: Task, draw: random.Random) -> list[str]:
    """The right one, and others: a changed operator or number, another result, another module."""
    mutants = [ast.unparse(tree) for tree in changed(ast.parse(task.code))]
    wrapped = [
        f"{task.code}\n\n_first = {task.entry}\n\ndef {task.entry}(*arguments):\n"
        f"    value = _first(*arguments)\n    return {result}"
        for result in _RESULTS
    ]
    whole = [text.format(entry=task.entry, code=task.code) for text in _WHOLE]
    kinds = ((mutants, 6), (wrapped, 10), (whole, 3))
    chosen = [code for texts, count in kinds for code in draw.sample(texts, min(count, len(texts)))]
    return [task.code, *chosen][:_PER_TASK]


def changed(tree: ast.Module) -> Iterator[ast.Module]:
    """Copies of the tree, each with another operator, number or condition."""
    for place, node in enumerate(ast.walk(tree)):
        for other in _others(node):
            copy = deepcopy(tree)
            target = list(ast.walk(copy))[place]
            for field, value in other.items():
                setattr(target, field, value)
            yield ast.fix_missing_locations(copy)


def _others(node: ast.AST) -> Iterator[dict[str, Any]]:
    swaps: dict[type[ast.AST], ast.AST] = {
        ast.Add: ast.Sub(),
        ast.Sub: ast.Add(),
        ast.Mult: ast.Add(),
        ast.Div: ast.FloorDiv(),
        ast.FloorDiv: ast.Div(),
        ast.Mod: ast.Mult(),
    }
    comparisons: dict[type[ast.AST], ast.cmpop] = {
        ast.Lt: ast.LtE(),
        ast.LtE: ast.Lt(),
        ast.Gt: ast.GtE(),
        ast.Eq: ast.NotEq(),
        ast.NotEq: ast.Eq(),
        ast.NotIn: ast.In(),
    }
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in swaps:
        yield {"op": swaps[type(node.op)]}
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in comparisons:
        yield {"ops": [comparisons[type(node.ops[0])]]}
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield {"value": node.value + 1}
        yield {"value": -node.value}
    elif isinstance(node, ast.If | ast.IfExp):
        yield {"test": ast.UnaryOp(op=ast.Not(), operand=node.test)}
