# SPDX-License-Identifier: Apache-2.0
"""Trivia and search questions from memory: TriviaQA (arXiv:1705.03551), WebQuestions (Berant et al. 2013), Natural
Questions (Kwiatkowski et al. 2019) without a text (Lee et al. 2019, arXiv:1906.00300)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def _answer_fields(question: str, answers: list[str]) -> Row:
    first, *others = dict.fromkeys(answer.strip() for answer in answers if answer.strip())
    return {"question": question, "expected_answer": first, "accepted_answers": others}


def triviaqa_row(raw: Row, index: int) -> Row:
    answer = raw["answer"]
    return {"id": raw["question_id"], **_answer_fields(raw["question"], [answer["value"], *answer["aliases"]])}


def webqs_row(raw: Row, index: int) -> Row:
    return {**_answer_fields(raw["question"], list(raw["answers"])), "url": raw.get("url")}


def nq_open(raw: Row, index: int) -> Row:
    return _answer_fields(f"{raw['question'].strip().rstrip('?')}?", list(raw["answer"]))


BENCHMARKS = (
    Benchmark(
        name="triviaqa",
        category="factuality",
        title="TriviaQA: trivia without a text",
        sources=(Source(split="validation", hf="mandarjoshi/trivia_qa", config="rc.nocontext"),),
        row=triviaqa_row,
        prompt="generic/short-answer",
        grader="short_answer",
        grader_config={"measure": "triviaqa"},
        metric="short_answer",
        split="validation",
        items={"validation": 17944},
        licence="Apache-2.0",
        homepage="https://nlp.cs.washington.edu/triviaqa/",
        citation="arXiv:1705.03551",
        unverified=True,
        traps=("Any alias of the answer counts.",),
    ),
    Benchmark(
        name="webqs",
        category="factuality",
        title="WebQuestions: what people search for",
        aliases=("web_questions",),
        sources=(Source(hf="stanfordnlp/web_questions"),),
        row=webqs_row,
        prompt="generic/short-answer",
        grader="short_answer",
        metric="short_answer",
        items={"test": 2032},
        licence="CC-BY-4.0",
        homepage="https://nlp.stanford.edu/software/sempre/",
        citation="Berant, Chou, Frostig, Liang, EMNLP 2013",
        unverified=True,
        traps=("The answers are of 2013, and any one of several counts.",),
    ),
    Benchmark(
        name="nq-open",
        category="factuality",
        title="Natural Questions without a text",
        aliases=("nq_open",),
        sources=(Source(split="validation", hf="google-research-datasets/nq_open"),),
        row=nq_open,
        prompt="generic/short-answer",
        grader="short_answer",
        metric="short_answer",
        split="validation",
        items={"validation": 3610},
        licence="CC-BY-SA-3.0",
        homepage="https://github.com/google-research-datasets/natural-questions",
        citation="arXiv:1906.00300",
        unverified=True,
        headline="`em`: share of answers that equal a right one, but for articles, case and punctuation",
        traps=("The answers are of 2018, and any one of several counts.",),
    ),
)
