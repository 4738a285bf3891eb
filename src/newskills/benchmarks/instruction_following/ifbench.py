# SPDX-License-Identifier: Apache-2.0
"""IFBench (Pyatkin et al. 2025, arXiv:2507.02833)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row


def row(raw: Row, index: int) -> Row:
    if len(raw["instruction_id_list"]) != len(raw["kwargs"]):
        raise ValueError("instruction_id_list and kwargs differ in length")
    kwargs = [
        {key: _as_integer(value) for key, value in arguments.items() if value is not None}
        for arguments in raw["kwargs"]
    ]
    return {"id": f"ifbench-{raw['key']}", **raw, "kwargs": kwargs, "question": raw["prompt"]}


def _as_integer(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


BENCHMARK = Benchmark(
    name="ifbench",
    category="instruction-following",
    title="IFBench: 58 kinds of checkable instructions that training sets lack",
    aliases=("ns_ifbench",),
    sources=(
        Source(
            url="https://raw.githubusercontent.com/allenai/IFBench/refs/heads/main/data/IFBench_test.jsonl",
            revision="db69a6f05689830b0068b8f1529ebcfd2f3b164c",
            sha256="a2bf7b8e7ed11d39c65b4ec781da8b99663ed0121f97033d70fcecb61f8a9d85",
        ),
    ),
    row=row,
    grader="ifbench",
    metric="if",
    items={"test": 300},
    requires="newskills[instructions]",
    licence="ODC-BY-1.0",
    homepage="https://github.com/allenai/IFBench",
    citation="arXiv:2507.02833",
    traps=(
        "344 instructions in 300 prompts; published scores are mostly the loose prompt accuracy.",
        "The checks changed after the paper (overlap, keywords, spans): compare scores of one version only.",
        "A reply that must start with a verb is checked with a list of verbs, not with a tagger.",
    ),
)
