# SPDX-License-Identifier: Apache-2.0
"""Grade-school word problems with integer answers (Cobbe et al. 2021, arXiv:2110.14168)."""

import re
from hashlib import blake2b

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import number_text

_URL = "https://raw.githubusercontent.com/openai/grade-school-math/master/grade_school_math/data/"
_COMMIT = "3101c7d5072418e28b9008a6636bde82a006892c"
_CALCULATOR = re.compile(r"<<[^<>]*>>")

# Seven training answers contradict their solution or their question; the right ones, by digest of the question.
_CORRECTED = {
    "4c311510190b": "19200",
    "f288551ca592": "64",
    "2bc669792537": "108",
    "69941dd42c36": "13",
    "379c96589037": "6",
    "e9e0b4745de1": "10",
    "00c8735abc63": "10750",
}


def row(raw: Row, index: int) -> Row:
    solution, _, answer = raw["answer"].rpartition("####")
    raw_number = number_text(answer)
    right = _CORRECTED.get(blake2b(raw["question"].encode(), digest_size=6).hexdigest(), raw_number)
    fields = {
        "problem": raw["question"],
        "expected_answer": right,
        "reference_solution": _CALCULATOR.sub("", solution).strip(),
    }
    if right != raw_number:
        fields["raw_answer"] = raw_number
    return fields


BENCHMARK = Benchmark(
    name="gsm8k",
    category="math-natural",
    title="Grade-school math word problems",
    aliases=("ns_gsm8k",),
    sources=(
        Source(
            url=f"{_URL}test.jsonl",
            revision=_COMMIT,
            sha256="3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14",
        ),
        Source(
            split="train",
            url=f"{_URL}train.jsonl",
            revision=_COMMIT,
            sha256="17f347dc51477c50d4efb83959dbb7c56297aba886e5544ee2aaed3024813465",
        ),
    ),
    row=row,
    prompt="generic/math",
    items={"test": 1319, "train": 7473},
    licence="MIT",
    homepage="https://github.com/openai/grade-school-math",
    citation="arXiv:2110.14168",
    traps=(
        "The answer follows the last ####; thousands commas are removed (14 test answers).",
        "Calculator marks <<…>> are removed from the reference solutions.",
        "Seven training answers that contradict their own question are corrected; raw_answer keeps the original.",
    ),
)
