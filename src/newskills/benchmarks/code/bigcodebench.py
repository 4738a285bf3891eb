# SPDX-License-Identifier: Apache-2.0
"""Functions that call many libraries, with unit tests (Zhuo et al. 2024, arXiv:2406.15877)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_FIELDS = ("task_id", "code_prompt", "entry_point", "canonical_solution", "test", "libs")
_NETWORK = {"BigCodeBench/1006", "BigCodeBench/1012"}
_HARD = (
    "https://raw.githubusercontent.com/QwenLM/Qwen2.5-Coder/main/qwencoder-eval/base/benchmarks/bigcodebench/data"
)


def row(raw: Row, index: int) -> Row:
    return {
        "id": raw["task_id"],
        "question": raw["instruct_prompt"],
        "complete_prompt": raw["complete_prompt"],
        **{name: raw[name] for name in _FIELDS},
        "needs_network": raw["task_id"] in _NETWORK,
    }


def _benchmark(name: str, split: str, items: int, sources: tuple[Source, ...], *, unverified: bool) -> Benchmark:
    return Benchmark(
        name=name,
        category="code",
        title=f"BigCodeBench, {'hard' if items < 1000 else 'full'} set: functions that use many libraries",
        sources=sources,
        row=row,
        prompt="eval/bigcodebench/codegen",
        grader="bigcodebench",
        metric="bigcodebench",
        split=split,
        items={split: items},
        licence="Apache-2.0",
        homepage="https://bigcode-bench.github.io",
        citation="arXiv:2406.15877",
        needs_sandbox=True,
        unverified=unverified,
        traps=(
            "The instruct form is asked; the head of the function is put before the answer (calibrated results).",
            "The tests use some 70 libraries (pandas, sklearn, …): answers to tasks whose library the sandbox lacks "
            "are unscored, and named so.",
            "Tasks 1006 and 1012 download something: answers that fail are unscored.",
            "The tests run in the answer's process, since they patch its modules.",
        ),
    )


_MIRRORED = Source(
    split="v0.1.4",
    url=f"{_HARD}/bigcodebench_hard.json",
    revision="d5ead97fea36bca3744e1a4c49e882f6fa2f406a",
    format="json",
    sha256="5e7a87ff1085eafb13b2d570277bcb53dba68201717b4fc987a3f2b86a23869c",
)
_FULL = Source(split="full", hf="bigcode/bigcodebench", hf_split="v0.1.4", format="parquet")
BENCHMARKS = (
    _benchmark("bigcodebench", "full", 1140, (_FULL,), unverified=True),
    _benchmark("bigcodebench-hard", "v0.1.4", 148, (_MIRRORED,), unverified=False),
)
