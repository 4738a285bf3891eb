# SPDX-License-Identifier: Apache-2.0
"""Kinds of questions: which columns each needs, and how it is asked, graded and counted unless the file says else."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from newskills.base.benchmark import Judge
from newskills.base.records import Row


class QuestionKind(Struct, frozen=True, kw_only=True):
    """What `kind: NAME` stands for.

    meaning   one line for people who have to choose
    needs     roles that columns must fill; `may`: further ones that it uses
    settings  `++` settings that it needs
    judge     the judge where the file names none
    asked_by  field of prepared rows that holds the question
    example   how a solved example looks in the prompt, where that is not as the prompt's own section says
    """

    meaning: str
    needs: tuple[str, ...]
    may: tuple[str, ...] = ()
    prompt: str
    grader: str
    grader_config: Row = {}
    metric: str
    solver: str = "chat"
    settings: Row = {}
    needs_sandbox: bool = False
    judged: bool = False
    judge: Judge = Judge(prompt="judge/general-judge")
    asked_by: str = "problem"
    example: str = ""


KINDS: Mapping[str, QuestionKind] = {
    "math": QuestionKind(
        meaning="a number or a formula, compared by value",
        needs=("question", "answer"),
        may=("solution",),
        prompt="generic/math",
        grader="math",
        metric="math",
        example="Problem:\n{problem}\n\nAnswer:\n\\boxed{{{expected_answer}}}\n\n",
    ),
    "choice": QuestionKind(
        meaning="one of several options",
        needs=("question", "options", "answer"),
        prompt="generic/mcq",
        grader="multichoice",
        metric="multichoice",
    ),
    "choices": QuestionKind(
        meaning="all right ones of several options",
        needs=("question", "options", "answer"),
        prompt="generic/mcq-several",
        grader="option_set",
        metric="generic",
    ),
    "yes_no": QuestionKind(
        meaning="yes or no",
        needs=("question", "answer"),
        prompt="generic/yes-no",
        grader="multichoice",
        metric="multichoice",
        asked_by="question",
    ),
    "short_answer": QuestionKind(
        meaning="a name, a date, a few words; articles, case and punctuation do not matter",
        needs=("question", "answer"),
        may=("accepted",),
        prompt="generic/short-answer",
        grader="short_answer",
        metric="short_answer",
        asked_by="question",
    ),
    "word": QuestionKind(
        meaning="exactly one of the accepted texts; case and punctuation do not matter",
        needs=("question", "answer"),
        may=("accepted", "solution"),
        prompt="generic/general-boxed",
        grader="exact",
        grader_config={"extract": "answer", "loose": True},
        metric="generic",
        example="Problem:\n{problem}\n\nAnswer:\n\\boxed{{{expected_answer}}}\n\n",
    ),
    "judged": QuestionKind(
        meaning="a text that another model compares with the expected one",
        needs=("question",),
        may=("answer",),
        prompt="generic/default",
        grader="",
        metric="math",
        judged=True,
        asked_by="question",
    ),
    "rubric": QuestionKind(
        meaning="a text that another model holds against criteria with points: `rubric`, or a column `rubrics`",
        needs=("question",),
        may=("answer", "rubrics"),
        prompt="generic/default",
        grader="",
        metric="rubric",
        judged=True,
        judge=Judge(prompt="judge/rubric", kind="rubric", grader="rubric"),
        asked_by="question",
    ),
    "likelihood": QuestionKind(
        meaning="the likeliest of several texts, by log-probabilities",
        needs=("options", "answer"),
        may=("context", "question"),
        prompt="generic/continuation",
        grader="loglikelihood",
        metric="loglikelihood",
        solver="loglikelihood",
        asked_by="context",
    ),
    "text": QuestionKind(
        meaning="a text itself: bits per byte, perplexity per byte and per word",
        needs=("text",),
        prompt="{text}",
        grader="perplexity",
        metric="perplexity",
        solver="perplexity",
        settings={"inference.endpoint_type": "text", "inference.tokens_to_generate": 1},
        asked_by="text",
    ),
    "translation": QuestionKind(
        meaning="a translation; `fields` name source_language, target_language, source_lang_name, target_lang_name",
        needs=("source", "reference"),
        prompt="multilingual/segment-translation",
        grader="translation",
        metric="translation",
        asked_by="source",
    ),
    "code": QuestionKind(
        meaning="a Python function, run on tests in the sandbox",
        needs=("question", "entry_point", "tests"),
        may=("solution",),
        prompt="generic/codegen",
        grader="evalplus",
        metric="evalplus",
        needs_sandbox=True,
        asked_by="question",
    ),
    "free": QuestionKind(
        meaning="whatever `prompt`, `grader` and `metric` say; columns become fields of the same names",
        needs=(),
        prompt="generic/default",
        grader="",
        metric="generic",
        asked_by="question",
    ),
}

ROLES = tuple(
    dict.fromkeys(
        [role for kind in KINDS.values() for role in (*kind.needs, *kind.may)] + ["id", "subset", "context"]
    )
)
"""What columns are called in `columns`, beside `SYNONYMS`; any other name there is a field that prompts may use."""

SYNONYMS: Mapping[str, str] = {
    "problem": "question",
    "expected_answer": "answer",
    "accepted_answers": "accepted",
    "continuations": "options",
    "test_list": "tests",
    "canonical_solution": "solution",
    "subset_for_metrics": "subset",
}
"""What prepared rows call a role → the role: nobody has to know which of the two is meant."""
