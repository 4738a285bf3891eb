# SPDX-License-Identifier: Apache-2.0
"""A training prompt that differs from the evaluation's is told, wherever it differs; other questions are none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from newskills.run.training.prompt_frames import frame_of, prompt_difference
from newskills.train.loops.samples import Problem
from newskills.train.loops.sft import example

EVALUATED = [f"<user>Solve this.\n{question}\nAnswer with a number.<assistant>" for question in ("1 + 1", "2 + 3")]


def ids(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def text(tokens: Sequence[int]) -> str:
    return "".join(map(chr, tokens))


def difference(*prompts: str, question: str = "problem") -> str:
    rows = [{question: "1 + 1"}, {question: "2 + 3"}]
    problems = [Problem(ids(prompt), row) for prompt, row in zip(EVALUATED, rows, strict=True)]
    return prompt_difference(
        [example(ids(prompt), ids("2")) for prompt in prompts], problems, text, "--eval_benchmark=x"
    )


@pytest.mark.parametrize("question", ["problem", "of_nobody"])
def test_other_questions_are_no_difference(question: str) -> None:
    assert difference(EVALUATED[0].replace("1 + 1", "12 * 7"), question=question) == ""


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("<user>1 + 1<assistant>", "begin with '<user>1 + 1<assistant>', its prompts with '<user>Solve this."),
        (EVALUATED[0].replace("a number", "digits"), "end with"),
        (f"<system>You are good.{EVALUATED[0]}", "begin with '<system>You are good."),
    ],
)
def test_what_differs_is_quoted(prompt: str, words: str) -> None:
    sentence = difference(EVALUATED[0], prompt)
    assert sentence.startswith("1 of 2 training prompts are not asked as --eval_benchmark=x asks")
    assert words in sentence
    assert "ns prepare_training_data --benchmark=x" in sentence


def test_a_frame_is_what_stands_around_the_questions() -> None:
    pairs = [("Q: a a\nA:", "a a"), ("Q: a b\nA:", "a b")]
    assert frame_of(pairs) == ("Q: ", "\nA:")
