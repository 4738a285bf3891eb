# SPDX-License-Identifier: Apache-2.0
"""The twelve tasks of RULER's second version: keys, questions of MMLU and documents of HotpotQA, in four levels each.

What is asked for follows the reference system's settings (public repository NVIDIA-NeMo/Skills); the words are ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.benchmarks.downloads.fetch import Fetcher, FetchOptions
from newskills.benchmarks.downloads.sources import opened
from newskills.benchmarks.general_knowledge.mmlu import BENCHMARK as MMLU
from newskills.benchmarks.ruler import words
from newskills.benchmarks.ruler.build import Family, Limits, RulerOptions, articles_of, make_family
from newskills.benchmarks.ruler.tasks import Article, Made

_ORDINALS = ("first", "second", "third", "fourth")
_DIGITS, _VALUE_DIGITS = 7, 10


class Item(NamedTuple):
    """A question with options, and the letter of the right one."""

    text: str
    letter: str


class Numbered(NamedTuple):
    """An item and its number in the text, which up to `same` items share."""

    number: str
    item: Item


def make(folder: Path, given: Row, fetch: FetchOptions) -> list[str]:
    """As `ruler.build.make`."""
    return make_family(SECOND, folder, given, fetch)


def _material(name: str, options: RulerOptions, fetcher: Fetcher) -> tuple[Any, Row]:
    if name.endswith("niah_basic"):
        return (), {}
    if name.startswith("qa"):
        articles, url = articles_of("hotpotqa", fetcher)
        return articles, {"documents": url}
    problems = []
    for source in MMLU.sources:
        if source.split == MMLU.split:
            try:
                with opened(source, fetcher) as files:
                    items = [_item(raw.row) for raw in files.rows()]
            except DataError as error:
                problems.append(error.message)
                continue
            return items, {"questions": source.url}
    raise DataError(" ".join(problems))


def _item(raw: Row) -> Item:
    options = " ".join(f"{letter}. {raw[letter]}" for letter in "ABCD")
    return Item(" ".join(f"{raw['question']} {options}".split()), raw["answer"])


def build(name: str, units: int, random: Random, material: Any, index: int) -> Made:
    """A sample among `units` other keys, questions or documents. Raises DataError: there are not so many."""
    kind, _, level = name.rpartition("_")
    if kind == "qa":
        return _documents(level, units, random, material, index)
    if level == "basic":
        return _keys(4 if kind == "mv_niah" else 1, units, random)
    if units >= len(material):
        raise DataError(f"{units} questions are needed to fill the length, and there are {len(material)}.")
    return _items(kind == "mv_niah", level, units, random, material, index)


def _keys(values: int, units: int, random: Random) -> Made:
    wanted, *others = words.keys(random, 1 + units)
    found = [words.number(random, _VALUE_DIGITS) for _ in range(values)]
    pairs = [(wanted, value) for value in found]
    pairs += [(other, words.number(random, _VALUE_DIGITS)) for other in others]
    random.shuffle(pairs)
    text = "\n".join(f"The secret number of {key} is {value}." for key, value in pairs)
    asked = "all secret numbers" if values > 1 else "the secret number"
    return Made(
        f"The text below gives secret numbers to names. You will be asked about one of the names.\n\n{text}\n\n"
        f"Give {asked} of {wanted} in the text.",
        "",
        found,
    )


def _items(shared: bool, level: str, units: int, random: Random, items: Sequence[Item], index: int) -> Made:
    asked = items[index * 997 % len(items)]
    others = random.sample([item for item in items if item.text != asked.text], units)
    numbers = _numbers(len(others) + 1, len(_ORDINALS) if shared else 1, random)
    listed = [Numbered(number, item) for number, item in zip(numbers, [*others, asked], strict=True)]
    target = listed[-1]
    random.shuffle(listed)
    same = [one.item for one in listed if one.number == target.number]
    text = "\n\n".join(map(_line, listed))
    if shared:
        return _copied(level, text, target, same)
    examples = random.sample([one for one in listed if one is not target], min(5, len(others)))
    return _single(level, text, target, examples)


def _line(one: Numbered) -> str:
    return f"Question {one.number}: {one.item.text}"


def _numbers(count: int, same: int, random: Random) -> list[str]:
    """Numbers for items, each of which up to `same` items share, in random order."""
    different: dict[str, None] = {}
    while len(different) < math.ceil(count / same):
        different[words.number(random, _DIGITS)] = None
    numbers = list(different) * same
    random.shuffle(numbers)
    return numbers[:count]


def _copied(level: str, text: str, target: Numbered, same: Sequence[Item]) -> Made:
    head = (
        f"Here are numbered questions; several may have the same number. You will be asked to copy.\n\n{text}\n\n"
    )
    if level == "easy":
        texts = list(dict.fromkeys(item.text for item in same))
        return Made(f"{head}Copy every Question {target.number} of the text, word by word.", "", texts)
    steps = f"First copy every Question {target.number} in their order. Then, at the end, copy"
    place = _ORDINALS[same.index(target.item)]
    wish = f"the {place} Question {target.number} of the text, counted from its beginning."
    return Made(f"{head}{steps if level == 'medium' else 'Copy'} {wish}", "", [target.item.text])


def _single(level: str, text: str, target: Numbered, examples: Sequence[Numbered]) -> Made:
    if level == "easy":
        return Made(
            f"Here are numbered questions. You will be asked to copy one of them.\n\n{text}\n\n"
            f"Copy Question {target.number} of the text, word by word.",
            "",
            [target.item.text],
        )
    first = level == "medium"
    wish = "Copy Question {}, then answer it" if first else "Answer Question {}"
    wish += " with A, B, C or D in a box."
    shown = "\n\n".join(
        "\n".join([wish.format(one.number), *([_line(one)] if first else []), f"\\boxed{{{one.item.letter}}}"])
        for one in examples
    )
    return Made(
        "Here are numbered questions. You will be asked to answer one of them, with only the letter in \\boxed{}."
        f"\n\n{text}\n\nSome examples:\n\n{shown}\n\nNow the task:\n\n{wish.format(target.number)}",
        "",
        [target.item.letter],
    )


def _documents(level: str, units: int, random: Random, articles: Sequence[Article], index: int) -> Made:
    asked = articles[index % len(articles)]
    own = set(asked.texts)
    pool = list(dict.fromkeys(text for article in articles for text in article.texts if text not in own))
    if units > len(pool):
        raise DataError(f"{units} documents are needed to fill the length, and there are {len(pool)}.")
    texts = [*(asked.texts if units else asked.supports), *random.sample(pool, units)]
    random.shuffle(texts)
    numbers = dict(zip(texts, _numbers(len(texts), 1, random), strict=True))
    listed = "\n\n".join(f"Document {numbers[text]}:\n{text}" for text in texts)
    head = f"Here are numbered documents.\n\n{listed}\n\n"
    if level == "basic":
        wish = f"Which number has this document? Give the number only.\n\n{asked.supports[0]}"
        return Made(f"{head}{wish}", "", [numbers[asked.supports[0]]])
    if level == "easy":
        wish = "Which document helps most to answer this question? Give its number only."
        return Made(f"{head}{wish}\n\nQuestion: {asked.question}", "", [numbers[text] for text in asked.supports])
    steps = "First copy the documents that matter for it, then answer" if level == "medium" else "Answer"
    wish = f"{steps} this question from the documents."
    return Made(f"{head}{wish}\n\nQuestion: {asked.question}", "", list(asked.golds))


SECOND = Family(
    "ruler2",
    {
        "mk_niah_basic": Limits(128, "ruler2", "all"),
        "mk_niah_easy": Limits(256, "ruler2", "all"),
        "mk_niah_medium": Limits(512, "multichoice"),
        "mk_niah_hard": Limits(256, "multichoice"),
        "mv_niah_basic": Limits(128, "ruler2", "all"),
        "mv_niah_easy": Limits(512, "ruler2", "all"),
        "mv_niah_medium": Limits(512, "ruler2", "2steps"),
        "mv_niah_hard": Limits(256, "ruler2", "all"),
        "qa_basic": Limits(32, "ruler2", "part"),
        "qa_easy": Limits(32, "ruler2", "part"),
        "qa_medium": Limits(512, "ruler2", "part"),
        "qa_hard": Limits(128, "ruler2", "part"),
    },
    _material,
    build,
)
