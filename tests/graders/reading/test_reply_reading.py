# SPDX-License-Identifier: Apache-2.0
"""What all graders share: reasoning that never ended gives no answer, and a reply ends where its model ended it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.records import Score
from newskills.graders.exact import ExactConfig, ExactGrader
from newskills.graders.math.config import MathConfig
from newskills.graders.math.grader import MathGrader
from newskills.graders.multichoice import MultichoiceGrader
from newskills.run.engine.grader_pool import verdict_fields
from newskills_math.extraction.run_on import without_next_question

GRADERS: list[tuple[Any, str, str]] = [
    (MathGrader(), "18", "4"),
    (MathGrader(MathConfig(relaxed_extraction=True)), "18", "4"),
    (MultichoiceGrader(), "B", "C"),
    (ExactGrader(ExactConfig(extract="answer")), "Paris", "Rome"),
]
FORMS = ["Answer: {}", "The answer is {}.", r"\boxed{{{}}}", "<answer>{}</answer>"]
OPENINGS = [
    "<think>",
    "[THINK]",
    "<thinking>",
    "<reasoning>",
    "<|channel|>analysis<|message|>",
    "◁think▷",
    "<seed:think>",
]
RUN_ONS = [
    "\n\nQuestion: What is next?\n{}",
    "\n\nQ: What is next?\nA: {}",
    "\n\n## Problem 2:\n{}",
    "\n\n**Question:** And?\n{}",
    "<|im_end|>\n<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\n{}",
    "</s>[INST] And? [/INST] {}",
    "\nUser: And?\nAssistant: {}",
    "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd?<|eot_id|>{}",
    "<end_of_turn>\n<start_of_turn>user\nAnd?<end_of_turn>\n{}",
    "\n\nPregunta: ¿Y?\n{}",
    "\n\n问题：{}",
]


def grade(grader: Any, reply: str, gold: str) -> Score:
    score: Score = grader.grade({"generation": reply, "expected_answer": gold})
    return score


@pytest.mark.parametrize("run_on", RUN_ONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("grader", "right", "other"), GRADERS)
def test_what_follows_the_end_of_a_reply_is_not_read(
    grader: Any, right: str, other: str, form: str, run_on: str
) -> None:
    reply = f"We think.\n{form.format(right)}{run_on.format(form.format(other))}"
    assert grade(grader, reply, right).outcome == "correct"
    assert grade(grader, reply, other).outcome == "wrong"


@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("grader", "right", "other"), GRADERS)
def test_reasoning_that_was_cut_off_is_never_correct(
    grader: Any, right: str, other: str, form: str, opening: str
) -> None:
    record = {"generation": f"{opening}maybe {form.format(right)} but", "expected_answer": right}
    score = grader.grade(record)
    assert score.outcome == "no_answer"
    assert verdict_fields(record, score)["outcome_cause"] == "truncation"


@pytest.mark.parametrize(
    "reply",
    [
        "Question: restated, with 3 in it\n\nAnswer: 18",
        "Let us restate.\n\nProblem: with 3 in it.\n\nThe answer is 18.",
        "Question 1: what is half of it? The answer is 9.\n\nQuestion 2: and all of it? The answer is 18.",
        "Problem: x\nSolution: y\nAnswer: 18",
        "User: is a word.\nThe answer is 18.",
        "\n\nQ: what?\nA: the answer is 18.",
        "The answer is 19.\n\nProblem: this counts the empty set, so the answer is 18.",
    ],
)
def test_headings_of_a_reply_of_its_own(reply: str) -> None:
    assert grade(MathGrader(), reply, "18").outcome == "correct"


@given(st.text(), st.sampled_from(RUN_ONS[:4]))
def test_only_what_follows_an_answer_is_left_out(text: str, run_on: str) -> None:
    shorter = without_next_question(text + run_on.format(""))
    assert (text + run_on.format("")).startswith(shorter)
    marked = f"{text.replace('Q', '').replace('P', '')}\n#### 18"
    assert without_next_question(marked + run_on.format("#### 4")).rstrip().endswith("#### 18")
