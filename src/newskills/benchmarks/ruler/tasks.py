# SPDX-License-Identifier: Apache-2.0
"""The thirteen tasks: each builds a sample around a haystack of a given number of units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice
from random import Random
from string import ascii_lowercase, ascii_uppercase
from typing import Literal, NamedTuple

from newskills.base.errors import DataError
from newskills.benchmarks.ruler import words

_ZETA_2 = math.pi**2 / 6
_FREQUENT, _SELDOM, _COMMON = 30, 3, 10


class TaskSample(NamedTuple):
    """`prompt` ends with the question, `prefix` begins the answer, `answers` are the texts to be found in it."""

    prompt: str
    prefix: str
    answers: list[str]


class Article(NamedTuple):
    """A question with its texts; `golds`: any of them is right; `supports`: the texts that matter."""

    question: str
    golds: list[str]
    texts: list[str]
    supports: Sequence[str] = ()


class TaskMaterial(NamedTuple):
    """What tasks are made of besides words: sentences to hide in (none: generated ones), and documents."""

    sentences: Sequence[str] = ()
    articles: Sequence[Article] = ()


class RulerTask(NamedTuple):
    """kind of builder, answer's length in tokens, how answers count, and the builder's settings."""

    kind: Literal["needles", "chain", "common", "frequent", "documents"]
    tokens: int
    match: Literal["all", "part"] = "all"
    haystack: Literal["noise", "essay", "needle"] = "noise"
    keyed_by: Literal["words", "uuids"] = "words"
    valued_by: Literal["numbers", "uuids"] = "numbers"
    keys: int = 1
    values: int = 1
    queries: int = 1
    documents: Literal["", "squad", "hotpotqa"] = ""


TASKS = {
    "niah_single_1": RulerTask("needles", 128),
    "niah_single_2": RulerTask("needles", 128, haystack="essay"),
    "niah_single_3": RulerTask("needles", 128, haystack="essay", valued_by="uuids"),
    "niah_multikey_1": RulerTask("needles", 128, haystack="essay", keys=4),
    "niah_multikey_2": RulerTask("needles", 128, haystack="needle"),
    "niah_multikey_3": RulerTask("needles", 128, haystack="needle", keyed_by="uuids", valued_by="uuids"),
    "niah_multivalue": RulerTask("needles", 128, haystack="essay", values=4),
    "niah_multiquery": RulerTask("needles", 128, haystack="essay", keys=4, queries=4),
    "vt": RulerTask("chain", 30),
    "cwe": RulerTask("common", 120),
    "fwe": RulerTask("frequent", 50),
    "qa_1": RulerTask("documents", 32, "part", documents="squad"),
    "qa_2": RulerTask("documents", 32, "part", documents="hotpotqa"),
}


def build_sample(task: RulerTask, units: int, random: Random, material: TaskMaterial, index: int) -> TaskSample:
    """Return a sample with `units` units of haystack: sentences, needles, words or documents."""
    if task.kind == "needles":
        return _needles_sample(task, units, random, material)
    if task.kind == "chain":
        return _chain_sample(units, random)
    if task.kind == "common":
        return _common_words_sample(units, random)
    if task.kind == "frequent":
        return _frequent_words_sample(units, random)
    return _documents_sample(units, random, material.articles, index)


def _needles_sample(task: RulerTask, units: int, random: Random, material: TaskMaterial) -> TaskSample:
    kind = "number" if task.valued_by == "numbers" else "code"
    names = _draw_names(task, random, task.keys + (units if task.haystack == "needle" else 0))
    wanted, others = names[: task.keys], names[task.keys :]
    values = {name: [_draw_value(task, random) for _ in range(task.values)] for name in wanted}
    needles = [_needle_sentence(kind, name, value) for name in wanted for value in values[name]]
    if task.haystack == "needle":
        hay: Iterable[str] = (_needle_sentence(kind, name, _draw_value(task, random)) for name in others)
    elif task.haystack == "noise":
        hay = islice(words.noise_sentences(), units)
    else:
        hay = _essay_sentences(units, random, material.sentences)
    text = _hide_needles(list(hay), needles, random, "\n" if task.haystack == "needle" else " ")
    asked_names = random.sample(wanted, task.queries)
    golds = [value for name in asked_names for value in values[name]]
    if len(asked_names) > 1:
        about = " and ".join((", ".join(asked_names[:-1]), asked_names[-1]))
    else:
        about = asked_names[0]
    noun, verb, each = kind, "is", ""
    if len(golds) > 1:
        noun, verb, each = f"{kind}s", "are", "all "
    return TaskSample(
        f"Somewhere in the text below, secret {kind}s are given to certain names. Remember them: you will be asked "
        f"about them afterwards.\n\n{text}\n\nWhat {verb} {each}the secret {noun} of {about} in the text?",
        f"The secret {noun} of {about} in the text {verb}",
        golds,
    )


def _draw_names(task: RulerTask, random: Random, count: int) -> list[str]:
    if task.keyed_by == "words":
        return words.draw_keys(random, count)
    return [words.draw_uuid(random) for _ in range(count)]


def _draw_value(task: RulerTask, random: Random) -> str:
    if task.valued_by == "numbers":
        return words.draw_number(random, 7)
    return words.draw_uuid(random)


def _needle_sentence(kind: str, name: str, value: str) -> str:
    return f"The secret {kind} of {name} is {value}."


def _essay_sentences(units: int, random: Random, sentences: Sequence[str]) -> list[str]:
    """Return consecutive sentences from a random place on; the text is repeated where it is too short."""
    if not sentences:
        return list(islice(words.draw_sentences(random), units))
    start = random.randrange(len(sentences))
    return [sentences[(start + at) % len(sentences)] for at in range(units)]


def _hide_needles(hay: list[str], needles: Sequence[str], random: Random, between: str) -> str:
    """Return the text with the needles at random depths, each one of 41 places from the beginning to the end."""
    order = list(needles)
    random.shuffle(order)
    depths = sorted(random.sample(range(41), len(order)), reverse=True)
    for depth, needle in zip(depths, order, strict=True):
        hay.insert(round(len(hay) * depth / 40), needle)
    return between.join(hay)


def _draw_assignments(random: Random, hops: int) -> tuple[str, list[str], list[str]]:
    """Draw (value, names, statements) of one chain."""
    names: list[str] = []
    while len(names) <= hops:
        name = words.draw_letters(random, 5, ascii_uppercase)
        if name not in names:
            names.append(name)
    value = words.draw_number(random, 5)
    pairs = zip(names[1:], names[:-1], strict=True)
    statements = [f"VAR {names[0]} = {value}.", *(f"VAR {left} = VAR {right}." for left, right in pairs)]
    return value, names, statements


def _chain_sample(units: int, random: Random) -> TaskSample:
    example_value, example_names, example = _draw_assignments(random, 2)
    value, names, statements = _draw_assignments(random, 4)
    hay = list(islice(words.noise_sentences(), max(units, 0)))
    places = sorted(random.sample(range(41), len(statements)), reverse=True)
    for place, statement in zip(places, reversed(statements), strict=True):
        hay.insert(round(len(hay) * place / 40), statement)
    question = "Which variables have the value {}, directly or by way of others? Name all of them."
    return TaskSample(
        "A text hides assignments of variables. Follow them.\n\n"
        f"Example: {' '.join(example)}\n{question.format(example_value)}\nAnswer: {' '.join(example_names)}\n\n"
        f"Text: {' '.join(hay)}\n\n{question.format(value)}",
        f"The {len(names)} variables with the value {value} are",
        names,
    )


def _common_words_sample(units: int, random: Random) -> TaskSample:
    """Return a sample with a list of about `units` words: ten frequent ones, and seldom ones."""
    frequent, seldom = 10, 1
    if units >= 2 * _COMMON * _FREQUENT:
        frequent, seldom = _FREQUENT, _SELDOM
    others = max(_COMMON, (units - _COMMON * frequent) // seldom)
    example, text = _word_list(10, 3, 20, 1, random), _word_list(_COMMON, frequent, others, seldom, random)
    question = "Which ten words occur most often in the list?"
    return TaskSample(
        "Read a numbered list of words, in which some occur more often than others.\n\n"
        f"Example:\n{example[1]}\n{question}\nAnswer: {' '.join(example[0])}\n\n"
        f"List:\n{text[1]}\n\n{question}",
        "The ten words that occur most often in the list are",
        text[0],
    )


def _word_list(common: int, often: int, others: int, seldom: int, random: Random) -> tuple[list[str], str]:
    """Draw (frequent words, the numbered list)."""
    all_words = [*words.NOUNS, *words.ADJECTIVES]
    if common + others <= len(all_words):
        chosen = random.sample(all_words, common + others)
    else:
        chosen = words.draw_keys(random, common + others)
    listed = chosen[:common] * often + chosen[common:] * seldom
    random.shuffle(listed)
    return chosen[:common], " ".join(f"{place}. {word}" for place, word in enumerate(listed, 1))


def _frequent_words_sample(units: int, random: Random) -> TaskSample:
    """Draw about `units` coded words, whose counts fall with the square of their rank; the first rank is dots."""
    vocabulary: dict[str, None] = {}
    while len(vocabulary) < max(50, units // 50):
        vocabulary[words.draw_letters(random, 6, ascii_lowercase)] = None
    ranked = ["...", *vocabulary]
    counts = [math.floor(units / (rank**2 * _ZETA_2)) for rank in range(1, len(ranked) + 1)]
    counts[1:4] = [max(count, least) for count, least in zip(counts[1:4], (4, 3, 2), strict=True)]
    text = [word for word, count in zip(ranked, counts, strict=True) for _ in range(count)]
    random.shuffle(text)
    return TaskSample(
        "Read a coded text and find out which words are frequent in it. Dots are no words.\n\n"
        f"{' '.join(text)}\n\nWhich three coded words occur most often in the text?",
        "The three coded words that occur most often are",
        ranked[1:4],
    )


def _documents_sample(units: int, random: Random, articles: Sequence[Article], index: int) -> TaskSample:
    """Return a sample with the texts of one question among `units` others. Raises DataError where there are not so
    many."""
    if not articles:
        raise DataError("There are no documents to ask about.")
    asked_article = articles[index % len(articles)]
    own = set(asked_article.texts)
    pool = list(dict.fromkeys(text for article in articles for text in article.texts if text not in own))
    if units > len(pool):
        raise DataError(f"{units} documents are needed to fill the length, and there are {len(pool)}.")
    texts = [*asked_article.texts, *random.sample(pool, units)]
    random.shuffle(texts)
    listed = "\n\n".join(f"Document {number}:\n{text}" for number, text in enumerate(texts, 1))
    request = "Answer the question from these documents, in a few words and without anything else."
    return TaskSample(
        f"{request}\n\n{listed}\n\n{request}\n\nQuestion: {asked_article.question}",
        "Answer:",
        list(dict.fromkeys(asked_article.golds)),
    )
