# SPDX-License-Identifier: Apache-2.0
"""Undergraduate theorems with their statements in words and in Lean 3 (Azerbayev et al. 2023, arXiv:2302.12433)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_HOME = "https://raw.githubusercontent.com/zhangir-azerbayev/ProofNet/main/benchmark"
_SHA256 = {
    "test": "4eae0ba4a6503d6828afb63b4936f9913cce299ef81a17c372e1b75b56187177",
    "valid": "3bfbebfc1f279d16747a8ac89196910bde1a2781edcaa4ea3b1bdc64eb9fe50b",
}


def row(raw: Row, index: int) -> Row:
    return {
        "id": raw["id"],
        "name": raw["id"].rpartition("|")[2],
        "subset_for_metrics": raw["id"].partition("|")[0],
        "problem": raw["nl_statement"],
        "reference_solution": raw["nl_proof"],
        "header": raw["src_header"],
        "informal_prefix": f"/-- {raw['nl_statement'].strip()} -/\n",
        "formal_statement": raw["formal_statement"],
        "expected_answer": raw["formal_statement"],
    }


BENCHMARK = Benchmark(
    name="proofnet-original",
    category="math-formal",
    title="ProofNet as published: undergraduate theorems in words and in Lean 3",
    sources=tuple(
        Source(
            split=split,
            url=f"{_HOME}/{split}.jsonl",
            revision="509ad79710ed4f46ff5c282ed5640c1aa9ac3f30",
            sha256=sha256,
        )
        for split, sha256 in _SHA256.items()
    ),
    row=row,
    prompt="lean4/formal-proof",
    grader="lean4-proof",
    metric="lean4-proof",
    items={"test": 186, "valid": 185},
    licence="MIT",
    homepage="https://github.com/zhangir-azerbayev/ProofNet",
    citation="arXiv:2302.12433",
    needs_sandbox=True,
    traps=(
        "The statements are Lean 3: no Lean 4 takes them, and every proof stays unscored. Take `proofnet` for proofs, "
        "and this for putting theorems into Lean.",
    ),
)
