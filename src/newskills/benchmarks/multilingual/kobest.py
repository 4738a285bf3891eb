# SPDX-License-Identifier: Apache-2.0
"""Five tasks of Korean understanding (Jang et al. 2022, arXiv:2204.04541)."""

from newskills.base.benchmark import Benchmark, Group, RowMapper, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices

_YES_NO = ("예", "아니요")


def _choice_fields(question: str, options: tuple[str, ...], right: int) -> Row:
    if not 0 <= right < len(options):
        raise ValueError(f"the label is {right}, and there are {len(options)} options")
    return {**choices(question, options), "expected_answer": "ABCD"[right]}


def boolq_row(raw: Row, index: int) -> Row:
    return _choice_fields(f"{raw['paragraph']}\n\n{raw['question']}", _YES_NO, 1 - raw["label"])


def copa_row(raw: Row, index: int) -> Row:
    return _choice_fields(
        f"{raw['premise']}\n\n{raw['question']}은 무엇인가?",
        (raw["alternative_1"], raw["alternative_2"]),
        raw["label"],
    )


def hellaswag_row(raw: Row, index: int) -> Row:
    endings = tuple(raw[f"ending_{place}"] for place in range(1, 5))
    return _choice_fields(f"{raw['context']}\n\n다음에 이어질 문장은 무엇인가?", endings, raw["label"])


def sentineg_row(raw: Row, index: int) -> Row:
    return _choice_fields(f"{raw['sentence']}\n\n이 문장은 긍정인가, 부정인가?", ("부정", "긍정"), raw["label"])


def wic_row(raw: Row, index: int) -> Row:
    texts = f"문장 1: {raw['context_1']}\n문장 2: {raw['context_2']}"
    question = f"{texts}\n\n두 문장에서 '{raw['word']}'의 뜻이 같은가?"
    return _choice_fields(question, _YES_NO, 1 - raw["label"])


def _benchmark(task: str, title: str, row: RowMapper, items: int) -> Benchmark:
    return Benchmark(
        name=f"kobest.{task}",
        category="multilingual",
        title=f"KoBEST: {title}",
        sources=(Source(hf="skt/kobest_v1", config=task),),
        row=row,
        prompt="eval/aai/mcq-10choices",
        grader="multichoice",
        metric="multichoice",
        items={"test": items},
        licence="CC-BY-SA-4.0",
        homepage="https://huggingface.co/datasets/skt/kobest_v1",
        citation="arXiv:2204.04541",
        chance=0.25 if row is hellaswag_row else 0.5,
        unverified=True,
        traps=("The instruction is English, the questions are Korean.",),
    )


BENCHMARKS = (
    _benchmark("boolq", "yes or no", boolq_row, 1404),
    _benchmark("copa", "causes and effects", copa_row, 1000),
    _benchmark("hellaswag", "endings", hellaswag_row, 500),
    _benchmark("sentineg", "sentiment with negation", sentineg_row, 397),
    _benchmark("wic", "words in context", wic_row, 1260),
)

GROUP = Group(
    name="kobest",
    category="multilingual",
    title="KoBEST: five tasks of Korean understanding",
    members={benchmark.name: {} for benchmark in BENCHMARKS},
    homepage="https://huggingface.co/datasets/skt/kobest_v1",
    citation="arXiv:2204.04541",
)
