# SPDX-License-Identifier: Apache-2.0
"""Functions that call many libraries, with unit tests (Zhuo et al. 2024, arXiv:2406.15877)."""

from functools import partial

from msgspec import structs

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_FIELDS = ("task_id", "code_prompt", "entry_point", "canonical_solution", "test", "libs")
_NETWORK = {"BigCodeBench/1006", "BigCodeBench/1012"}


def row(part: str, raw: Row, index: int) -> Row:
    return {
        "id": raw["task_id"],
        "question": raw["instruct_prompt"],
        "complete_prompt": raw["complete_prompt"],
        **{name: raw[name] for name in _FIELDS},
        "needs_network": raw["task_id"] in _NETWORK,
        "split": part,
    }


_TRAPS = (
    "The instruct form is asked; the head of the function is put before the answer (calibrated results).",
    "The tests use some 70 libraries (pandas, sklearn, …): answers to tasks whose library the sandbox lacks "
    "are unscored, and named so.",
    "Tasks 1006 and 1012 download something: answers that fail are unscored.",
    "Most tests share a process with the answer, guarded but not sealed: see [Grading code](../grading-code.md).",
    "The tasks were made for older libraries: with pandas 3 the own solutions of 108, 503, 511 and 879 fail, with "
    "chardet 7 that of 1020.",
)
_OLD_LIBRARIES = {
    "BigCodeBench/108": "with pandas 3 its own solution fails its tests",
    "BigCodeBench/503": "with pandas 3 its tests fail: they call `applymap`",
    "BigCodeBench/511": "with pandas 3 and matplotlib 3.11 its own solution fails its tests",
    "BigCodeBench/879": "with pandas 3 its own solution fails its tests",
    "BigCodeBench/1020": "with chardet 7 its own solution fails its tests",
}
_HARD = Source(
    split="hard",
    url="https://raw.githubusercontent.com/QwenLM/Qwen2.5-Coder/main/qwencoder-eval/base/benchmarks/bigcodebench/"
    "data/bigcodebench_hard.json",
    revision="d5ead97fea36bca3744e1a4c49e882f6fa2f406a",
    format="json",
    sha256="5e7a87ff1085eafb13b2d570277bcb53dba68201717b4fc987a3f2b86a23869c",
)
_FULL = Source(split="full", hf="bigcode/bigcodebench", hf_split="v0.1.4", format="parquet")
_SHARED = Benchmark(
    name="bigcodebench",
    category="code",
    title="BigCodeBench, full set: functions that use many libraries",
    sources=(_FULL, _HARD),
    row=partial(row, "full"),
    variants={"hard": partial(row, "hard")},
    prompt="eval/bigcodebench/codegen",
    grader="bigcodebench",
    metric="bigcodebench",
    split="full",
    items={"full": 1140, "hard": 148},
    licence="Apache-2.0",
    homepage="https://bigcode-bench.github.io",
    citation="arXiv:2406.15877",
    needs_sandbox=True,
    unverified=True,
    traps=(*_TRAPS, "Only the split `hard` was read from its source; `full` on rows of the same schema."),
)
BENCHMARKS = (
    _SHARED,
    structs.replace(
        _SHARED,
        name="bigcodebench-hard",
        title="BigCodeBench, hard set: functions that use many libraries",
        sources=(structs.replace(_HARD, split="v0.1.4"),),
        row=partial(row, "hard"),
        variants={},
        split="v0.1.4",
        items={"v0.1.4": 148},
        unverified=False,
        misprints=_OLD_LIBRARIES,
        traps=_TRAPS,
    ),
)
