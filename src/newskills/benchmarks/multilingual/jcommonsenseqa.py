# SPDX-License-Identifier: Apache-2.0
"""Japanese common sense, five options (Kurihara et al. 2022, LREC, JGLUE)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices


def row(raw: Row, index: int) -> Row:
    return {
        "id": str(raw["q_id"]),
        "expected_answer": "ABCDE"[raw["label"]],
        **choices(raw["question"], [raw[f"choice{place}"] for place in range(5)]),
    }


BENCHMARK = Benchmark(
    name="jcommonsenseqa",
    category="multilingual",
    title="JCommonsenseQA: Japanese common sense",
    sources=(
        Source(
            split="validation",
            url="https://raw.githubusercontent.com/yahoojapan/JGLUE/main/datasets/jcommonsenseqa-v1.3/valid-v1.3.json",
            revision="6f071c09316baae89c3d083a90985b4b1cb9968c",
            sha256="0d8d76f3bfa0d174866939882faccdd01fbc2bcd5a76c43748ba0c40a7b3b8d4",
        ),
    ),
    row=row,
    prompt="eval/aai/mcq-10choices",
    grader="multichoice",
    metric="multichoice",
    split="validation",
    items={"validation": 1119},
    licence="CC-BY-SA-4.0",
    homepage="https://github.com/yahoojapan/JGLUE",
    citation="Kurihara, Kawahara, Shibata, LREC 2022",
    chance=0.2,
    traps=("The file has one JSON object a line, whatever its name says.",),
)
