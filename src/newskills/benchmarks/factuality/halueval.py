# SPDX-License-Identifier: Apache-2.0
"""Does a reply say what is not so? Replies of ChatGPT, marked by people (Li et al. 2023, arXiv:2305.11747)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import yes_no

_MARKED = {"yes": True, "no": False}


def row(raw: Row, index: int) -> Row:
    question = (
        "Does the reply contain statements that are false or that nobody can verify?\n\n"
        f"Request:\n{raw['user_query']}\n\nReply:\n{raw['chatgpt_response']}"
    )
    return {
        **yes_no(question, _MARKED[raw["hallucination"].strip().lower()]),
        "hallucination_spans": raw["hallucination_spans"],
    }


BENCHMARK = Benchmark(
    name="halueval",
    category="factuality",
    title="HaluEval, general: find hallucinations in replies",
    sources=(Source(url="https://raw.githubusercontent.com/RUCAIBox/HaluEval/main/data/general_data.json"),),
    row=row,
    prompt="generic/yes-no",
    grader="multichoice",
    metric="multichoice",
    items={"test": 4507},
    licence="MIT",
    homepage="https://github.com/RUCAIBox/HaluEval",
    citation="arXiv:2305.11747",
    chance=0.82,  # of always saying no
    traps=("About four of five replies are marked no: always saying no scores far above chance.",),
)
