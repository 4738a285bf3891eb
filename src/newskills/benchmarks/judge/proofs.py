# SPDX-License-Identifier: Apache-2.0
"""Proofs that people marked, for judges to accept or reject.

Open Proof Corpus (Dekoninck et al. 2025, arXiv:2506.21621), MathArena's proofs (arXiv:2505.23281), ProofBench
(arXiv:2510.13888).
"""

import math

from newskills.base.benchmark import Benchmark, RowMapper, Source
from newskills.base.records import Row

_PASSING = 6 / 7


def _judged(accepted: bool) -> str:
    return f"Judgement: {'Yes' if accepted else 'No'}"


def _share(raw: Row) -> float:
    """Points by the mean of all judges, of those that can be had."""
    if "grade" in raw:
        return float(raw["grade"]) / float(raw.get("max_points") or 7)
    judges = [name.removeprefix("points_judge_") for name in raw if name.startswith("points_judge_")]
    points = [(raw[f"points_judge_{judge}"], raw.get(f"max_points_judge_{judge}") or 7) for judge in judges]
    scored = [float(got) / float(most) for got, most in points if got is not None]
    if not scored:
        raise ValueError("no judge gave points")
    return math.fsum(scored) / len(scored)


def corpus(raw: Row, index: int) -> Row:
    scores = raw["score"] if isinstance(raw["score"], list) else [raw["score"]]
    return {
        "problem_id": str(raw.get("problem_id", "")),
        "problem": raw["problem"],
        "proof": raw["solution"],
        "expected_judgement": _judged(all(float(score) == 1 for score in scores)),
    }


def arena(raw: Row, index: int) -> Row:
    contest = str(raw.get("competition") or raw.get("_file", "").partition("_outputs")[0] or "all")
    return {
        "problem": raw["problem"],
        "proof": raw["proof"] if "proof" in raw else raw["answer"],
        "rubric": raw.get("rubric") or "",
        "expected_judgement": _judged(_share(raw) >= _PASSING),
        "subset_for_metrics": contest.rpartition("/")[2],
        "metadata": {name: raw[name] for name in ("problem_idx", "model_name") if name in raw},
    }


def bench(raw: Row, index: int) -> Row:
    return {
        "problem_id": str(raw.get("problem_id", "")),
        "problem": raw["problem"],
        "proof": raw["proof"],
        "rubric": raw.get("rubric") or "",
        "ground_truth_proof": raw.get("ground_truth_proof") or "",
        "expected_judgement": _judged(float(raw["rating"]) >= 6),
        "metadata": {name: raw[name] for name in ("rating", "model", "contest") if name in raw},
    }


def _benchmark(
    name: str, title: str, source: Source, row: RowMapper, home: str, paper: str, trap: str
) -> Benchmark:
    return Benchmark(
        name=name,
        category="judge",
        title=title,
        sources=(source,),
        row=row,
        prompt="judge/math-proof-judge",
        grader="answer-judgement",
        metric="answer-judgement",
        defaults={"generation_key": "judgement"},
        licence="unstated",
        homepage=f"https://huggingface.co/{home}",
        citation=paper,
        chance=0.5,
        unverified=True,
        traps=(
            trap,
            "Only single proofs are judged; choosing the best of several (bon_test) is not part of this.",
        ),
    )


BENCHMARKS = (
    _benchmark(
        "open-proof-corpus-judge",
        "Open Proof Corpus: proofs by models, right or wrong",
        Source(hf="INSAIT-Institute/OPC"),
        corpus,
        "datasets/INSAIT-Institute/OPC",
        "arXiv:2506.21621",
        "Where several people marked a proof, all must have accepted it.",
    ),
    _benchmark(
        "proof-arena-judge",
        "MathArena's proofs: IMO, USAMO and IMC of 2025",
        Source(
            url="https://huggingface.co/datasets/MathArena/{imo_2025,usamo_2025,imc_2025}_outputs/resolve/main/"
            "data/train-00000-of-00001.parquet",
            format="parquet",
        ),
        arena,
        "MathArena",
        "arXiv:2505.23281",
        "A proof counts as right from 6 of 7 points on, by the mean of its judges.",
    ),
    _benchmark(
        "proof-bench-judge",
        "ProofBench: proofs marked from 0 to 7",
        Source(hf="wenjiema02/ProofBench", hf_split="train"),
        bench,
        "datasets/wenjiema02/ProofBench",
        "arXiv:2510.13888",
        "A proof counts as right from 6 of 7 points on.",
    ),
)
