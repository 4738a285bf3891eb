# SPDX-License-Identifier: Apache-2.0
"""Symbolic tasks of Kojima et al. 2022 (arXiv:2205.11916), and the dates of BIG-bench (arXiv:2206.04615)."""

from collections.abc import Callable
from typing import Any

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices, shuffled, yes_no

_URL = "https://raw.githubusercontent.com/kojima-takeshi188/zero_shot_cot/main/dataset/"
_COMMIT = "5ef330fcdeec0cd26aee27943504f91f8ec1c33c"
_ANSWERS = {"yes": True, "no": False}


def coin_flip(raw: Row, index: int) -> Row:
    return yes_no(raw["question"], _ANSWERS[raw["answer"]])


def last_letters(raw: Row, index: int) -> Row:
    return {"problem": raw["question"], "expected_answer": raw["answer"]}


def date_understanding(raw: Row, index: int) -> Row:
    """Shuffle the options, since the right date comes first in the file."""
    scores = raw["target_scores"]
    options, places = shuffled(list(scores), raw["input"])
    (right,) = [option for option, score in scores.items() if score == 1]
    return {
        "expected_answer": "ABCDEF"[options.index(right)],
        **choices(raw["input"], options),
        "option_order": places,
    }


def _benchmark(
    name: str, title: str, file: str, sha256: str, row: Callable[[Row, int], Row], **rest: Any
) -> Benchmark:
    source = Source(url=f"{_URL}{file}", format="json", records=("examples",), revision=_COMMIT, sha256=sha256)
    return Benchmark(
        name=name,
        category="reasoning",
        title=title,
        sources=(source,),
        row=row,
        homepage="https://github.com/kojima-takeshi188/zero_shot_cot",
        citation="arXiv:2205.11916",
        **rest,
    )


BENCHMARKS = (
    _benchmark(
        "coin_flip",
        "Coin flip: is it still heads up",
        "coin_flip/coin_flip.json",
        "68cf201737a1463ef6bed5419622805a8934d92bff6a28a9dfbf83be3135ba5a",
        coin_flip,
        prompt="generic/yes-no",
        grader="multichoice",
        metric="multichoice",
        items={"test": 500},
        licence="unstated",
        chance=0.5,
    ),
    _benchmark(
        "last_letters",
        "Last letters of four words",
        "last_letters/last_letters.json",
        "60e8d092d0a6423d3256e87e0c249b69aefea4cd27985082095fa4e93931fb02",
        last_letters,
        prompt="generic/general-boxed",
        grader="exact",
        grader_config={"extract": "answer", "loose": True},
        metric="generic",
        items={"test": 500},
        licence="unstated",
    ),
    _benchmark(
        "date_understanding",
        "Date understanding: which day it is",
        "Bigbench_Date/task.json",
        "ff716f0e399109146db3a998281c39954907b78268a9b633a95582d63847822f",
        date_understanding,
        prompt="eval/aai/mcq-10choices",
        grader="multichoice",
        metric="multichoice",
        items={"test": 369},
        licence="Apache-2.0",
        chance=0.17,
        traps=("Options are shuffled by the text of the question (option_order).",),
    ),
)
