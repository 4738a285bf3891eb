# SPDX-License-Identifier: Apache-2.0
"""Counting, sorting and adding over a passage (Dua et al. 2019, arXiv:1903.00161)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def answer_spans(answer: Row) -> list[str]:
    """Return the spans of an answer, which is a number, or several spans, or a date."""
    if str(answer["number"]).strip():
        return [str(answer["number"])]
    if answer["spans"]:
        return [str(span) for span in answer["spans"]]
    date = " ".join(str(answer["date"][part]) for part in ("day", "month", "year")).split()
    if date:
        return [" ".join(date)]
    return []


def validated_answers(answers: Row | list[Row]) -> list[Row]:
    """Return the answers of further people: a list, or columns as parquet has them."""
    if isinstance(answers, list):
        return answers
    return [dict(zip(answers, values, strict=True)) for values in zip(*answers.values(), strict=True)]


def row(raw: Row, index: int) -> Row:
    spans_of_answers = [
        answer_spans(answer) for answer in (raw["answer"], *validated_answers(raw["validated_answers"]))
    ]
    accepted = [
        list(accepted_spans) for accepted_spans in dict.fromkeys(map(tuple, spans_of_answers)) if accepted_spans
    ]
    if not accepted:
        raise ValueError("no answer has a number, a span or a date")
    return {
        "question": f"{raw['passage']}\n\nQuestion: {raw['question']}",
        "expected_answer": accepted[0][0] if len(accepted[0]) == 1 else accepted[0],
        "accepted_answers": accepted[1:],
    }


BENCHMARK = Benchmark(
    name="drop",
    category="reasoning",
    title="DROP: arithmetic over a passage",
    sources=(Source(split="validation", hf="EleutherAI/drop"),),
    row=row,
    prompt="generic/short-answer",
    grader="short_answer",
    grader_config={"measure": "drop"},
    metric="short_answer",
    split="validation",
    items={"validation": 9535},
    licence="CC-BY-SA-4.0",
    homepage="https://allenai.org/data/drop",
    citation="arXiv:1903.00161",
    unverified=True,
    traps=(
        "The best of all validated answers counts, in exact match and in F1.",
        'Where several spans are expected, the answer is cut at commas, semicolons and "and".',
    ),
)
