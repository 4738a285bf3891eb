# SPDX-License-Identifier: Apache-2.0
"""Chinese school mathematics: CMATH (Wei et al. 2023, arXiv:2306.16636) and examinations (arXiv:2409.12122)."""

from newskills.base.benchmark import Benchmark, RowMapper, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices, rename_columns

_URL = "https://raw.githubusercontent.com/QwenLM/Qwen2.5-Math/refs/heads/main/evaluation/data/"
_COMMIT = "a45202bd16f1ec06f433442dc1152d0074773465"


def cmath_row(raw: Row, index: int) -> Row:
    made = rename_columns(raw, question="problem", answer="expected_answer")
    return {**made, "subset_for_metrics": f"grade {raw['grade']}"}


def examination_row(raw: Row, index: int) -> Row:
    """Return a row in which the letter of a choice counts as well as its value."""
    letter, problem, answer = raw["choice_answer"], raw["question"], raw["answer"]
    if not letter:
        return {"problem": problem, "expected_answer": answer, "subset_for_metrics": "free"}
    return {
        "problem": problem,
        "expected_answer": answer.removeprefix(f"{letter}. "),
        "accepted_answers": [letter],
        "subset_for_metrics": "choice",
    }


def choice_row(raw: Row, index: int) -> Row:
    return {
        **choices(raw["question"], [raw["options"][letter] for letter in "ABCD"]),
        "expected_answer": "".join(sorted(raw["label"].replace(" ", ""))),
        "source": raw["other"]["source"],
    }


def cloze_row(raw: Row, index: int) -> Row:
    return {
        "problem": raw["question"],
        "expected_answer": raw["answer"].replace(";", ", "),
        "source": raw["other"]["source"],
    }


def _benchmark(name: str, title: str, row: RowMapper, items: int, sha256: str, *traps: str) -> Benchmark:
    if row is choice_row:
        prompt, grader, metric, chance = "generic/general-boxed", "option_set", "multichoice", 0.25
    else:
        prompt, grader, metric, chance = "generic/math", "math", "math", 0.0
    return Benchmark(
        name=name,
        category="multilingual",
        title=title,
        sources=(Source(url=f"{_URL}{name}/test.jsonl", revision=_COMMIT, sha256=sha256),),
        row=row,
        prompt=prompt,
        grader=grader,
        metric=metric,
        items={"test": items},
        licence="unstated (examination problems)",
        homepage="https://github.com/QwenLM/Qwen2.5-Math",
        citation="arXiv:2306.16636" if row is cmath_row else "arXiv:2409.12122",
        chance=chance,
        traps=("The problems are Chinese, the instruction is English.", *traps),
    )


_LETTER_OR_VALUE = "Of questions with options, the letter counts as well as the value."
BENCHMARKS = (
    _benchmark(
        "cmath",
        "CMATH: Chinese elementary school mathematics",
        cmath_row,
        600,
        "e2ceabf05d10b37f207eaebbe8db24dbfc961e1a4f07337d2fc4db42a7f44fdb",
    ),
    _benchmark(
        "cn_middle_school",
        "Chinese middle school examinations of 2024",
        examination_row,
        101,
        "d768b866b72ecd1ddcaa84acb56d7bd70d759fbb2cdb0c2bc63f1e5befdb58d6",
        _LETTER_OR_VALUE,
    ),
    _benchmark(
        "gaokao2024_mix",
        "Gaokao 2024: choices and free answers",
        examination_row,
        91,
        "d00cf32da2252408cb7abd49e8e13adcb801dc08e74a9bd57d1df92c0416935c",
        _LETTER_OR_VALUE,
        "One question refers to a figure.",
    ),
    _benchmark(
        "gaokao_math_qa",
        "Gaokao mathematics: choices",
        choice_row,
        351,
        "4717f8ab70130e277da9056261e3d63f1f6b062049b97b2d204299917da656fb",
        "Some questions have several right options: all must be named, and no other.",
    ),
    _benchmark(
        "gaokao_math_cloze",
        "Gaokao mathematics: blanks to fill",
        cloze_row,
        118,
        "088675c147794970a3ed25c7147a3bbc59715d6813837d5f483f46dcb1b5008d",
        "Answers to several blanks must be in their order.",
        "The same file as agieval.gaokao-mathcloze.",
    ),
)
