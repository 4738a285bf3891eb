# SPDX-License-Identifier: Apache-2.0
"""What follows from a premise: ANLI (Nie et al. 2019, arXiv:1910.14599) and RTE (as in GLUE, arXiv:1804.07461)."""

from collections.abc import Sequence

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices

THREE = (
    "Entailment: the hypothesis must be true",
    "Neutral: the hypothesis may be true or false",
    "Contradiction: the hypothesis must be false",
)
_TWO = ("Entailment: the hypothesis must be true", "No entailment: the hypothesis need not be true")


def nli_fields(premise: str, hypothesis: str, relations: Sequence[str], label: int) -> Row:
    if not 0 <= label < len(relations):
        raise ValueError(f"the label is {label}; 0 to {len(relations) - 1} are expected")
    return {
        "premise": premise,
        "hypothesis": hypothesis,
        **choices(f"Premise: {premise}\nHypothesis: {hypothesis}", relations),
        "expected_answer": "ABC"[label],
    }


def anli_row(raw: Row, index: int) -> Row:
    return {
        "id": f"anli-{raw.get('uid', index)}",
        **nli_fields(raw["premise"], raw["hypothesis"], THREE, int(raw["label"])),
        "reason": raw.get("reason"),
        "subset_for_metrics": str(raw.get("_split", "")).removeprefix("test_") or "all",
    }


def rte_row(raw: Row, index: int) -> Row:
    return nli_fields(raw["sentence1"], raw["sentence2"], _TWO, int(raw["label"]))


BENCHMARKS = (
    Benchmark(
        name="anli",
        category="reasoning",
        title="ANLI: adversarial inference, three rounds",
        sources=(Source(hf="facebook/anli", hf_split="{test_r1,test_r2,test_r3}"),),
        row=anli_row,
        prompt="generic/nli",
        grader="multichoice",
        metric="multichoice",
        items={"test": 3200},
        licence="CC-BY-NC-4.0",
        homepage="https://github.com/facebookresearch/anli",
        citation="arXiv:1910.14599",
        chance=1 / 3,
        unverified=True,
        traps=("Rounds of 1000, 1000 and 1200 items are reported each (subsets r1, r2, r3).",),
    ),
    Benchmark(
        name="rte",
        category="reasoning",
        title="RTE: does it follow",
        sources=(Source(split="validation", hf="nyu-mll/glue", config="rte"),),
        row=rte_row,
        prompt="generic/nli",
        grader="multichoice",
        metric="multichoice",
        split="validation",
        items={"validation": 277},
        licence="unstated",
        homepage="https://gluebenchmark.com",
        citation="arXiv:1804.07461",
        chance=0.5,
        unverified=True,
        traps=("Label 0 is entailment.", "Labels of the test split are hidden."),
    ),
)
