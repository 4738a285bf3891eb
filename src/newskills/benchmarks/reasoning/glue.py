# SPDX-License-Identifier: Apache-2.0
"""Tasks of GLUE (Wang et al. 2018, arXiv:1804.07461) but RTE, which stands beside ANLI, and STS-B, whose answers are
marks: MNLI, QNLI, WNLI, QQP, MRPC, SST-2, CoLA. Labels of the test splits are hidden.

`context` and `continuations` are for the solver `loglikelihood`.
"""

from collections.abc import Callable

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.reasoning.nli import THREE, nli_fields
from newskills.benchmarks.reasoning.super_glue import glue_benchmark
from newskills.benchmarks.text import BY_LIKELIHOOD, choices, yes_no


def _checked_label(raw: Row, most: int) -> int:
    label = int(raw["label"])
    if label not in range(most):
        raise ValueError(f"the label is {label}; 0 to {most - 1} are expected")
    return label


def _yes_or_no(question: str, context: str, is_yes: bool) -> Row:
    return {**yes_no(question, is_yes), "context": context, "continuations": [" yes", " no"]}


def mnli_row(raw: Row, index: int) -> Row:
    premise, hypothesis = raw["premise"], raw["hypothesis"]
    return {
        "id": f"{raw['_split']}-{raw['idx']}",
        **nli_fields(premise, hypothesis, THREE, _checked_label(raw, 3)),
        "subset_for_metrics": raw["_split"].removeprefix("validation_"),
        "context": f"{premise}\nQuestion: {hypothesis} True, False or Neither?\nAnswer:",
        "continuations": [" True", " Neither", " False"],
    }


def qnli_row(raw: Row, index: int) -> Row:
    texts = f"Question: {raw['question']}\nSentence: {raw['sentence']}"
    request = "Does the sentence answer the question?"
    return _yes_or_no(f"{texts}\n\n{request}", f"{texts}\n{request}\nAnswer:", _checked_label(raw, 2) == 0)


def wnli_row(raw: Row, index: int) -> Row:
    first, second = raw["sentence1"], raw["sentence2"]
    return {
        **yes_no(f"{first}\n\nDoes this follow from it: {second}", _checked_label(raw, 2) == 1),
        "context": f"{first}\nQuestion: {second} True or False?\nAnswer:",
        "continuations": [" True", " False"],
    }


def _similarity_row(raw: Row, texts: str, request: str) -> Row:
    return _yes_or_no(f"{texts}\n\n{request}", f"{texts}\n{request}\nAnswer:", _checked_label(raw, 2) == 1)


def qqp_row(raw: Row, index: int) -> Row:
    texts = f"Question 1: {raw['question1']}\nQuestion 2: {raw['question2']}"
    return _similarity_row(raw, texts, "Do both questions ask the same?")


def mrpc_row(raw: Row, index: int) -> Row:
    texts = f"Sentence 1: {raw['sentence1']}\nSentence 2: {raw['sentence2']}"
    return _similarity_row(raw, texts, "Do both sentences mean the same?")


def cola_row(raw: Row, index: int) -> Row:
    return _similarity_row(raw, f"Sentence: {raw['sentence']}", "Is this sentence acceptable English?")


def sst2_row(raw: Row, index: int) -> Row:
    sentence, label = raw["sentence"].strip(), _checked_label(raw, 2)
    request = "Is this sentence positive or negative?"
    return {
        "expected_answer": "AB"[label],
        **choices(f"{sentence}\n\n{request}", ("negative", "positive")),
        "context": f"{sentence}\nQuestion: {request}\nAnswer:",
        "continuations": [" negative", " positive"],
    }


def _benchmark(
    name: str, title: str, row: Callable[[Row, int], Row], items: int, fields: str, **more: object
) -> Benchmark:
    splits = "{validation_matched,validation_mismatched}" if name == "mnli" else "validation"
    return glue_benchmark(
        name,
        title,
        row,
        items,
        Source(split="validation", hf="nyu-mll/glue", config=name, hf_split=splits),
        homepage="https://gluebenchmark.com",
        citation="arXiv:1804.07461",
        **more,
    )


BENCHMARKS = (
    _benchmark(
        "mnli",
        "MNLI: what follows, in genres that the training set has and lacks",
        mnli_row,
        19647,
        "hypothesis, label, premise",
        prompt="generic/nli",
        chance=1 / 3,
        traps=("The leaderboard shows both halves (subsets matched and mismatched).", BY_LIKELIHOOD),
    ),
    _benchmark("qnli", "QNLI: does a sentence answer a question", qnli_row, 5463, "label, question, sentence"),
    _benchmark(
        "wnli",
        "WNLI: Winograd schemas as inference",
        wnli_row,
        71,
        "label, sentence1, sentence2",
        traps=("Only 71 items, most of them twice with other pronouns: an interval is wide.", BY_LIKELIHOOD),
    ),
    _benchmark(
        "qqp",
        "QQP: do two questions of Quora ask the same",
        qqp_row,
        40430,
        "label, question1, question2",
        metric="yes_no",
        traps=("63 % of the answers are no.", BY_LIKELIHOOD),
    ),
    _benchmark(
        "mrpc",
        "MRPC: do two sentences of the news mean the same",
        mrpc_row,
        408,
        "label, sentence1, sentence2",
        metric="yes_no",
        traps=("68 % of the answers are yes: always saying so has an F1 of 81.", BY_LIKELIHOOD),
    ),
    _benchmark("sst2", "SST-2: positive or negative", sst2_row, 872, "label, sentence", prompt="generic/mcq"),
    _benchmark(
        "cola",
        "CoLA: is a sentence acceptable English",
        cola_row,
        1043,
        "label, sentence",
        metric="yes_no",
        headline="`mcc`: Matthews' correlation of replies and answers, of 100; accuracy and F1 stand beside it",
        traps=("69 % of the answers are yes, which Matthews' correlation takes into account.", BY_LIKELIHOOD),
    ),
)
