# SPDX-License-Identifier: Apache-2.0
"""MiniF2F and ProofNet in Lean 4 as DeepSeek-Prover-V1.5 publishes them (Xin et al. 2024, arXiv:2408.08152)."""

from functools import partial

from msgspec.structs import replace

from newskills.base.benchmark import OTHER_SPLIT, Benchmark, Drop, Source
from newskills.base.records import Row

_HOME = "https://raw.githubusercontent.com/deepseek-ai/DeepSeek-Prover-V1.5/main/datasets"
_FIELDS = ("name", "split", "informal_prefix", "formal_statement", "goal", "header")


def row(split: str, raw: Row, index: int) -> Row | Drop:
    """Map a row; names of ProofNet come more than once, and the number of the line tells them apart."""
    if raw["split"] != split:
        return OTHER_SPLIT
    return {"id": f"{raw['name']}-{index}", **{field: raw[field] for field in _FIELDS}}


def _benchmark(name: str, file: str, title: str, sha256: str, items: dict[str, int], *traps: str) -> Benchmark:
    source = Source(
        url=f"{_HOME}/{file}.jsonl", revision="2c4ba9119eef74d0d611f494261b2c5bae98c69a", sha256=sha256
    )
    return Benchmark(
        name=name,
        category="math-formal",
        title=title,
        sources=tuple(replace(source, split=split) for split in items),
        row=partial(row, "test"),
        variants={"valid": partial(row, "valid")},
        prompt="lean4/formal-proof",
        grader="lean4-proof",
        metric="lean4-proof",
        items=items,
        licence="MIT",
        homepage="https://github.com/deepseek-ai/DeepSeek-Prover-V1.5",
        citation="arXiv:2408.08152",
        needs_sandbox=True,
        traps=(*traps, "Needs a Lean 4 project with Mathlib, of mid 2024: later ones changed names and notation."),
    )


BENCHMARKS = (
    _benchmark(
        "proofnet",
        "proofnet",
        "ProofNet: undergraduate theorems in Lean 4",
        "4a4d4fd69f45d6180830f12a73adb8a7e04915f651f3fa44a2877082fe252132",
        {"test": 186, "valid": 185},
        "Some items ask for data (`def … : G ≃* H`), not for a proof.",
    ),
    _benchmark(
        "minif2f-deepseek",
        "minif2f",
        "MiniF2F, earlier form: school and olympiad theorems in Lean 4",
        "d6654c88476ff14db19d57dea25bd955a240525fb52171e460f89d98f83d7dd5",
        {"test": 244, "valid": 244},
        "Some statements differ from those of `minif2f`, which were corrected.",
    ),
)
