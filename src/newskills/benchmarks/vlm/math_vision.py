# SPDX-License-Identifier: Apache-2.0
"""Problems of mathematical competitions that need their picture (Wang et al. 2024, arXiv:2402.14804)."""

from newskills.base.benchmark import Asset, Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices


def row(raw: Row, index: int) -> Row:
    question = raw["question"].strip()
    options = [str(option) for option in raw["options"]]
    listed = bool(options) and options != list("ABCDEFG"[: len(options)])
    fields: Row = {"problem": question}
    named = ""
    if listed:
        fields = choices(question, options)
        named = options["ABCDEFG".index(raw["answer"])]
    return {
        "id": f"math-vision-{raw['id']}",
        "question": question,
        **fields,
        "expected_answer": raw["answer"],
        "accepted_answers": [named] if len(named) > 1 or named.isdecimal() else [],
        "image_path": Asset(raw["image"]),
        "level": raw["level"],
        "subset_for_metrics": raw["subject"],
    }


def _source(split: str, sha256: str) -> Source:
    return Source(
        split=split,
        github="mathllm/MATH-V",
        ref="main",
        revision="a1f5cc3add200c0cd080fad463e500f44ef1fb41",
        members=f"data/{split}.jsonl",
        assets="images/*.jpg",
        sha256=sha256,
    )


BENCHMARK = Benchmark(
    name="math-vision",
    category="vlm",
    title="MATH-Vision: competition problems with pictures",
    aliases=("mathvision", "math-v"),
    sources=(
        _source("testmini", "449e238b768f702e2659543495f2c87ee1f41a9e9c013d174daf12029756227a"),
        _source("test", ""),
    ),
    row=row,
    prompt="vlm/math",
    grader_config={"absolute_tolerance": 0.005},
    split="testmini",
    items={"testmini": 304, "test": 3040},
    licence="MIT",
    homepage="https://mathllm.github.io/mathvision/",
    citation="arXiv:2402.14804",
    requires="newskills[media]",
    traps=(
        "About half of the problems have options and are answered by a letter, the others by a number or expression.",
        "As by the authors' program, an option's text counts like its letter, and values are compared to two places.",
        "Options that are only drawn in the picture are not listed in the text.",
        "The test set holds the 304 problems of testmini, too.",
    ),
)
