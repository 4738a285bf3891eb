# SPDX-License-Identifier: Apache-2.0
"""What several benchmarks need to turn raw fields into prepared ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from string import ascii_lowercase, ascii_uppercase

from newskills.base.records import Row

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_INTEGRAL = re.compile(r"([+-]?\d+)\.0*\Z")
_BOX = "\\boxed"
BY_LIKELIHOOD = (
    "Base models are better measured by likelihoods: ++solver=loglikelihood ++eval_type=loglikelihood "
    "++prompt_config=generic/continuation."
)
"""For the page of a benchmark whose rows have `context` and `continuations`, too."""


def number_text(value: float | str) -> str:
    """Return a number as people write it: integral floats as integers (27.0 → 27), no thousands commas (2,125 →
    2125)."""
    if isinstance(value, float):
        if value.is_integer():
            return str(int(value))
        return repr(value)
    return _INTEGRAL.sub(r"\1", _THOUSANDS.sub("", str(value).strip()))


def boxed_contents(text: str) -> list[str]:
    r"""Return the contents of all `\boxed{…}` and `\boxed x` in order; a box inside another belongs to the outer
    one."""
    boxes = []
    at = text.find(_BOX)
    while at >= 0:
        start = at + len(_BOX)
        while text[start : start + 1] == " ":
            start += 1
        end = closing_brace(text, start) if text[start : start + 1] == "{" else start
        if end < 0:
            break
        boxes.append(text[start + 1 : end] if end > start else text[start : start + 1])
        at = text.find(_BOX, end)
    return boxes


def closing_brace(text: str, start: int) -> int:
    """Place of the brace that closes the one at `start`; -1 where none does."""
    depth = 0
    at = start
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] in "{}":
            depth += 1 if text[at] == "{" else -1
            if depth == 0:
                return at
        at += 1
    return -1


def choices(question: str, options: Sequence[str] | Mapping[str, str]) -> Row:
    """Return the fields of a multiple-choice record: `problem` (question and lettered options), `options`, `A`, `B` and
    so on.

    Of a mapping, the values in its order. Raises ValueError: fewer than two options, more than there are letters, or
    one that is no text.
    """
    texts: list[object] = list(options.values() if isinstance(options, Mapping) else options)
    if isinstance(options, str) or not 2 <= len(texts) <= len(ascii_uppercase):
        raise ValueError(f"2 to {len(ascii_uppercase)} options are expected, not {options!r}")
    if unfit := [text for text in texts if text is None or isinstance(text, list | tuple | dict)]:
        raise ValueError(f"an option is not text: {unfit[0]!r}")
    lettered = dict(zip(ascii_uppercase, texts, strict=False))
    listing = "\n".join(f"{letter}) {option}" for letter, option in lettered.items())
    return {"problem": question.strip("\n") + "\n\n" + listing, "options": listing, **lettered}


def yes_no(question: str, answer: bool) -> Row:
    """Return the fields of a record for the prompt `generic/yes-no`; A is yes."""
    fields = choices(question, ("Yes", "No"))
    return {"question": question, **fields, "expected_answer": "A" if answer else "B"}


def shuffled(options: Sequence[str], key: str) -> tuple[list[str], list[int]]:
    """Shuffle into (options in an order that follows from `key` alone, their former places)."""
    places = list(range(len(options)))
    Random(key).shuffle(places)  # noqa: S311 - the order has to be the same everywhere, not secret
    return [options[place] for place in places], places


def rename_columns(raw: Row, **names: str) -> Row:
    """Return the row with some columns under the names that prompts and graders use (`question="problem"`), as texts.

    Raises KeyError for a column that is missing, ValueError for one without a value.
    """
    if without := [column for column in names if raw[column] is None]:
        raise ValueError(f"there is nothing in the column '{without[0]}'")
    new = {new_name: str(raw[column]) for column, new_name in names.items()}
    return {**{column: value for column, value in raw.items() if column not in names}, **new}


def split_options(text: str) -> list[str]:
    """Return the options of a text such as `A) 12 B) 15 C) 20`, `a ) 12 , b ) 15` or `['a ) 12', 'b ) 15']`, without
    letters.

    Raises ValueError where there are fewer than two.
    """
    text = text.strip()
    around = " ,\n"
    if text.startswith("["):
        around += "'\""
        text = text.strip("[]")
    letters = ascii_uppercase if text.strip(around)[:1].isupper() else ascii_lowercase
    starts: list[re.Match[str]] = []
    for letter in letters:
        mark = re.compile(rf"(?:\A|(?<=[\s{around}])){letter}\s?[).]\s*")
        match = mark.search(text, starts[-1].end() if starts else 0)
        if match is None:
            break
        starts.append(match)
    if len(starts) < 2:
        raise ValueError(f"{text!r} holds no lettered options")
    ends = [following.start() for following in starts[1:]] + [len(text)]
    return [text[start.end() : end].rstrip(around) for start, end in zip(starts, ends, strict=True)]
