# SPDX-License-Identifier: Apache-2.0
"""Small tasks with one right answer each, made from a seed: what GRPO learns in `bench.reinforce`.

The six of `FIXED` were written down before anything was trained on them, with the rule that decides how long each is
fine-tuned (`ENOUGH` and what follows it), and no setting may be chosen by them: `alphabet` is there for that.
"""

from __future__ import annotations

import ast
import operator
import random
from collections.abc import Callable
from string import ascii_lowercase

from msgspec import Struct

HELD_OUT, CHECKED, TUNE, REINFORCE, TUNE_MORE = 400, 100, 640, 800, 1920
"""Problems to measure on, to end the fine-tuning by, examples to fine-tune with, problems to reinforce with, further
examples; no question twice."""
ENOUGH, TOO_MUCH = 0.4, 0.6
"""Fine-tuning ends at the first check with a share right between these: the held-out share is then between
30 and 70 %."""
TUNE_STEPS, TUNE_RATE, CHECK_STEPS, ROUNDS = 80, 2e-3, 4, 6
"""Fine-tuning has rounds of so many steps, whose rate falls from this to 0, with a check every so many. A check above
`TOO_MUCH` ends its round: the next one goes on from the check before it, with a quarter of the rate and checks after
each step. After so many rounds, what there is is taken."""

_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_GOODS = ("pens", "nails", "stamps", "beads", "coins", "cards", "bolts", "seeds")


class Item(Struct, frozen=True):
    """`answer`: the last reply; `first`: that of the first of two turns, an example of it where there are several."""

    question: str
    answer: str
    first: str = ""


class Task(Struct, frozen=True):
    """What a problem is like.

    kind     what the task stands for
    draw     makes a problem
    between  what the model reads after the first of two replies; none: there is one
    strict   whether the first reply has to be right, too
    """

    kind: str
    draw: Callable[[random.Random], Item]
    between: Callable[[str], str] | None = None
    strict: bool = False


def every_second(draw: random.Random) -> Item:
    letters = draw.choices(ascii_lowercase, k=8)
    return Item(f"every second letter of {' '.join(letters)}:\n", " ".join(letters[1::2]))


def sums(draw: random.Random) -> Item:
    left, right, sign = draw.randrange(10, 100), draw.randrange(10, 100), draw.choice("+-")
    return Item(f"{left} {sign} {right} =\n", str(left + right if sign == "+" else left - right))


def dates(draw: random.Random) -> Item:
    year, month, day = draw.randrange(1900, 2100), draw.randrange(12), draw.randrange(1, 29)
    forms = (
        f"{day} {_MONTHS[month]} {year}",
        f"{_MONTHS[month]} {day}, {year}",
        f"{month + 1}/{day}/{year}",
        f"{day}.{month + 1}.{year}",
    )
    return Item(f"{draw.choice(forms)} as year-month-day:\n", f"{year}-{month + 1:02}-{day:02}")


def largest(draw: random.Random) -> Item:
    numbers = draw.sample(range(100, 1000), 4)
    shown = ", ".join(f"{letter}) {number}" for letter, number in zip("ABCD", numbers, strict=True))
    return Item(f"Which is the largest? {shown}\n", "ABCD"[numbers.index(max(numbers))])


def calculator(draw: random.Random) -> Item:
    boxes, each, more, goods = draw.randrange(11, 60), draw.randrange(11, 60), draw.randrange(11, 99), _GOODS
    name = draw.choice(goods)
    question, expression = draw.choice(
        [
            (f"{boxes} boxes of {each} {name}, and {more} more", f"{boxes}*{each}+{more}"),
            (f"{boxes} boxes of {each} {name}, of which {more} are lost", f"{boxes}*{each}-{more}"),
            (f"{each} {name} in each of {boxes} boxes and of {more} bags", f"{each}*({boxes}+{more})"),
        ]
    )
    return Item(f"{question}: how many {name}? Calculator:\n", calculated(expression), expression)


def calculated(expression: str) -> str:
    """The value of an expression of whole numbers with + − * and brackets, or "error"."""
    operators = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}

    def value(node: ast.expr) -> int:
        match node:
            case ast.BinOp(left=left, op=sign, right=right):
                return int(operators[type(sign)](value(left), value(right)))  # type: ignore[index]
            case ast.Constant(value=int(number)):
                return number
        raise ValueError

    try:
        return str(value(ast.parse(expression.strip(), mode="eval").body))
    except (SyntaxError, ValueError, KeyError, RecursionError):
        return "error"


def ends(draw: random.Random) -> Item:
    numbers = draw.sample(range(10, 1000), 5)
    return Item(f"smallest of {' '.join(map(str, numbers))}:\n", str(max(numbers)), str(min(numbers)))


def alphabet(draw: random.Random) -> Item:
    """The task that settings may be looked for with."""
    letters = draw.sample(ascii_lowercase, 5)
    return Item(f"{' '.join(letters)} in alphabetical order:\n", " ".join(sorted(letters)))


TASKS = {
    "letters": Task("string", every_second),
    "sums": Task("arithmetic", sums),
    "dates": Task("format", dates),
    "largest": Task("choice", largest),
    "calculator": Task("tool", calculator, lambda reply: f"\n= {calculated(reply)}\nAnswer:\n"),
    "ends": Task("two turns", ends, lambda _: "\nlargest:\n", strict=True),
    "alphabet": Task("settings", alphabet),
}
FIXED = tuple(name for name in TASKS if name != "alphabet")
SEEDS = (0, 1, 2)
ADDED_SEEDS, ADDED_TO = (3, 4), ("calculator", "dates", "largest")
"""Two seeds more, for the three tasks whose lift is above 0 with three seeds and whose interval is not. This was
decided after the first three were seen, and before any run of these two; both judgements are reported."""


class Split(Struct, frozen=True):
    held_out: list[Item]
    checked: list[Item]
    tune: list[Item]
    reinforce: list[Item]


def split(task: str) -> Split:
    """The same every time."""
    draw, items = random.Random(f"reinforce-{task}"), dict[str, Item]()
    while len(items) < HELD_OUT + CHECKED + TUNE + REINFORCE + TUNE_MORE:
        item = TASKS[task].draw(draw)
        items.setdefault(item.question, item)
    left = iter(items.values())
    held_out, checked, tune, reinforce, more = (
        [next(left) for _ in range(size)] for size in (HELD_OUT, CHECKED, TUNE, REINFORCE, TUNE_MORE)
    )
    return Split(held_out, checked, tune + more, reinforce)
