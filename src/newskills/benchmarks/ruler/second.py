# SPDX-License-Identifier: Apache-2.0
"""The twelve tasks of RULER's second version: keys, questions of MMLU and documents of HotpotQA, in four levels each.

What is asked for follows NeMo-Skills' settings (public repository NVIDIA-NeMo/Skills); the words are ours.
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
from newskills.benchmarks.downloads.sources import open_source
from newskills.benchmarks.general_knowledge.mmlu import BENCHMARK as MMLU
from newskills.benchmarks.ruler import words
from newskills.benchmarks.ruler.build import AnswerLimits, Family, RulerOptions, articles_of, make_family
from newskills.benchmarks.ruler.tasks import Article, TaskSample

_ORDINALS = ("first", "second", "third", "fourth")
_DIGITS, _VALUE_DIGITS = 7, 10


class OptionQuestion(NamedTuple):
    """A question with options, and the letter of the right one."""

    text: str
    letter: str


class NumberedItem(NamedTuple):
    """An item and its number in the text, which up to `same` items share."""

    number: str
    item: OptionQuestion


def make_ruler2(folder: Path, options_given: Row, fetch: FetchOptions) -> list[str]:
    """Make the files as `make_ruler` does for the first RULER."""
    return make_family(SECOND, folder, options_given, fetch)


def _task_material(name: str, options: RulerOptions, fetcher: Fetcher) -> tuple[Any, Row]:
    if name.endswith("niah_basic"):
        return (), {}
    if name.startswith("qa"):
        articles, url = articles_of("hotpotqa", fetcher)
        return articles, {"documents": url}
    problems = []
    for source in MMLU.sources:
        if source.split == MMLU.split:
            try:
                with open_source(source, fetcher) as files:
                    items = [_option_question(raw.row) for raw in files.rows()]
            except DataError as error:
                problems.append(error.message)
                continue
            return items, {"questions": source.url}
    raise DataError(" ".join(problems))


def _option_question(raw: Row) -> OptionQuestion:
    options = " ".join(f"{letter}. {raw[letter]}" for letter in "ABCD")
    return OptionQuestion(" ".join(f"{raw['question']} {options}".split()), raw["answer"])


def build_sample(name: str, units: int, random: Random, material: Any, index: int) -> TaskSample:
    """Return a sample among `units` other keys, questions or documents. Raises DataError: there are not so many."""
    kind, _, level = name.rpartition("_")
    if kind == "qa":
        return _documents_sample(level, units, random, material, index)
    if level == "basic":
        return _keys_sample(4 if kind == "mv_niah" else 1, units, random)
    if units >= len(material):
        raise DataError(f"{units} questions are needed to fill the length, and there are {len(material)}.")
    return _items_sample(kind == "mv_niah", level, units, random, material, index)


def _keys_sample(values: int, units: int, random: Random) -> TaskSample:
    wanted, *others = words.draw_keys(random, 1 + units)
    numbers = [words.draw_number(random, _VALUE_DIGITS) for _ in range(values)]
    pairs = [(wanted, value) for value in numbers]
    pairs += [(other, words.draw_number(random, _VALUE_DIGITS)) for other in others]
    random.shuffle(pairs)
    text = "\n".join(f"The secret number of {key} is {value}." for key, value in pairs)
    wish_object = "all secret numbers" if values > 1 else "the secret number"
    return TaskSample(
        f"The text below gives secret numbers to names. You will be asked about one of the names.\n\n{text}\n\n"
        f"Give {wish_object} of {wanted} in the text.",
        "",
        numbers,
    )


def _items_sample(
    shared: bool, level: str, units: int, random: Random, items: Sequence[OptionQuestion], index: int
) -> TaskSample:
    target_item = items[index * 997 % len(items)]
    others = random.sample([item for item in items if item.text != target_item.text], units)
    numbers = _draw_numbers(len(others) + 1, len(_ORDINALS) if shared else 1, random)
    listed = [NumberedItem(number, item) for number, item in zip(numbers, [*others, target_item], strict=True)]
    target = listed[-1]
    random.shuffle(listed)
    same = [numbered.item for numbered in listed if numbered.number == target.number]
    text = "\n\n".join(map(_question_line, listed))
    if shared:
        return _copy_sample(level, text, target, same)
    examples = random.sample([numbered for numbered in listed if numbered is not target], min(5, len(others)))
    return _single_item_sample(level, text, target, examples)


def _question_line(numbered: NumberedItem) -> str:
    return f"Question {numbered.number}: {numbered.item.text}"


def _draw_numbers(count: int, same: int, random: Random) -> list[str]:
    """Draw numbers for items, each of which up to `same` items share, in random order."""
    different: dict[str, None] = {}
    while len(different) < math.ceil(count / same):
        different[words.draw_number(random, _DIGITS)] = None
    numbers = list(different) * same
    random.shuffle(numbers)
    return numbers[:count]


def _copy_sample(level: str, text: str, target: NumberedItem, same: Sequence[OptionQuestion]) -> TaskSample:
    head = (
        f"Here are numbered questions; several may have the same number. You will be asked to copy.\n\n{text}\n\n"
    )
    if level == "easy":
        texts = list(dict.fromkeys(item.text for item in same))
        return TaskSample(f"{head}Copy every Question {target.number} of the text, word by word.", "", texts)
    steps = "Copy"
    if level == "medium":
        steps = f"First copy every Question {target.number} in their order. Then, at the end, copy"
    place = _ORDINALS[same.index(target.item)]
    wish = f"the {place} Question {target.number} of the text, counted from its beginning."
    return TaskSample(f"{head}{steps} {wish}", "", [target.item.text])


def _single_item_sample(
    level: str, text: str, target: NumberedItem, examples: Sequence[NumberedItem]
) -> TaskSample:
    if level == "easy":
        return TaskSample(
            f"Here are numbered questions. You will be asked to copy one of them.\n\n{text}\n\n"
            f"Copy Question {target.number} of the text, word by word.",
            "",
            [target.item.text],
        )
    first = level == "medium"
    wish = "Copy Question {}, then answer it" if first else "Answer Question {}"
    wish += " with A, B, C or D in a box."
    shown = "\n\n".join(
        "\n".join(
            [
                wish.format(numbered.number),
                *([_question_line(numbered)] if first else []),
                f"\\boxed{{{numbered.item.letter}}}",
            ]
        )
        for numbered in examples
    )
    return TaskSample(
        "Here are numbered questions. You will be asked to answer one of them, with only the letter in \\boxed{}."
        f"\n\n{text}\n\nSome examples:\n\n{shown}\n\nNow the task:\n\n{wish.format(target.number)}",
        "",
        [target.item.letter],
    )


def _documents_sample(
    level: str, units: int, random: Random, articles: Sequence[Article], index: int
) -> TaskSample:
    asked_article = articles[index % len(articles)]
    own = set(asked_article.texts)
    pool = list(dict.fromkeys(text for article in articles for text in article.texts if text not in own))
    if units > len(pool):
        raise DataError(f"{units} documents are needed to fill the length, and there are {len(pool)}.")
    texts = [*(asked_article.texts if units else asked_article.supports), *random.sample(pool, units)]
    random.shuffle(texts)
    numbers = dict(zip(texts, _draw_numbers(len(texts), 1, random), strict=True))
    listed = "\n\n".join(f"Document {numbers[text]}:\n{text}" for text in texts)
    head = f"Here are numbered documents.\n\n{listed}\n\n"
    if level == "basic":
        wish = f"Which number has this document? Give the number only.\n\n{asked_article.supports[0]}"
        return TaskSample(f"{head}{wish}", "", [numbers[asked_article.supports[0]]])
    if level == "easy":
        wish = "Which document helps most to answer this question? Give its number only."
        return TaskSample(
            f"{head}{wish}\n\nQuestion: {asked_article.question}",
            "",
            [numbers[text] for text in asked_article.supports],
        )
    if level == "medium":
        steps = "First copy the documents that matter for it, then answer"
    else:
        steps = "Answer"
    wish = f"{steps} this question from the documents."
    return TaskSample(f"{head}{wish}\n\nQuestion: {asked_article.question}", "", list(asked_article.golds))


SECOND = Family(
    "ruler2",
    {
        "mk_niah_basic": AnswerLimits(128, "ruler2", "all"),
        "mk_niah_easy": AnswerLimits(256, "ruler2", "all"),
        "mk_niah_medium": AnswerLimits(512, "multichoice"),
        "mk_niah_hard": AnswerLimits(256, "multichoice"),
        "mv_niah_basic": AnswerLimits(128, "ruler2", "all"),
        "mv_niah_easy": AnswerLimits(512, "ruler2", "all"),
        "mv_niah_medium": AnswerLimits(512, "ruler2", "2steps"),
        "mv_niah_hard": AnswerLimits(256, "ruler2", "all"),
        "qa_basic": AnswerLimits(32, "ruler2", "part"),
        "qa_easy": AnswerLimits(32, "ruler2", "part"),
        "qa_medium": AnswerLimits(512, "ruler2", "part"),
        "qa_hard": AnswerLimits(128, "ruler2", "part"),
    },
    _task_material,
    build_sample,
)
