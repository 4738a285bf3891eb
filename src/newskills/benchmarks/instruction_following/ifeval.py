# SPDX-License-Identifier: Apache-2.0
"""IFEval and its Korean translation (Zhou et al. 2023, arXiv:2311.07911)."""

from functools import partial

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(name: str, raw: Row, index: int) -> Row:
    if len(raw["instruction_id_list"]) != len(raw["kwargs"]):
        raise ValueError("instruction_id_list and kwargs differ in length")
    kwargs = [{key: value for key, value in arguments.items() if value is not None} for arguments in raw["kwargs"]]
    return {"id": f"{name}-{raw['key']}", **raw, "kwargs": kwargs, "question": raw["prompt"]}


_REQUIRES = "newskills[instructions]"
_LOOSE = "Strict and loose scores differ by several points: say which one is meant."

BENCHMARKS = (
    Benchmark(
        name="ifeval",
        category="instruction-following",
        title="IFEval: 25 kinds of instructions that a program can check",
        aliases=("ns_ifeval",),
        sources=(
            Source(
                url="https://raw.githubusercontent.com/google-research/google-research/master/instruction_following_eval/data/input_data.jsonl",
                revision="0c495b2f95155e8b10acb919ae283bfb4d5be6e2",
                sha256="67ffeee0fcb87c317c5b08a2de85557b4a7e96ada6178aa645b4954fe4b53d49",
            ),
        ),
        row=partial(row, "ifeval"),
        grader="if",
        metric="if",
        items={"test": 541},
        requires=_REQUIRES,
        licence="Apache-2.0",
        homepage="https://github.com/google-research/google-research/tree/master/instruction_following_eval",
        citation="arXiv:2311.07911",
        traps=(
            _LOOSE,
            "834 instructions in 541 prompts; some prompts contradict themselves, so 100 % is out of reach.",
        ),
    ),
    Benchmark(
        name="koifeval",
        category="instruction-following",
        title="IFEval-Ko: IFEval in Korean",
        sources=(Source(hf="allganize/IFEval-Ko", hf_split="train"),),
        row=partial(row, "koifeval"),
        grader="koifeval",
        metric="if",
        items={"test": 342},
        unverified=True,
        requires=_REQUIRES,
        licence="Apache-2.0",
        homepage="https://huggingface.co/datasets/allganize/IFEval-Ko",
        citation="arXiv:2311.07911",
        traps=(
            _LOOSE,
            "In about 27 of the 342 prompts the translation changed the instruction: a faithful answer can fail.",
            "A forbidden word with a particle behind it is not noticed.",
        ),
    ),
)
