# SPDX-License-Identifier: Apache-2.0
"""Proofs that people marked, for judges to accept or reject.

Open Proof Corpus (Dekoninck et al. 2025, arXiv:2506.21621), MathArena's proofs (arXiv:2505.23281), ProofBench
(arXiv:2510.13888).
"""

from newskills.base.benchmark import Benchmark, Drop, RowMapper, Source
from newskills.base.reading.reply_text import without_thinking
from newskills.base.records import Row

_MOST = {"imc": 10}
"""Points of a whole proof, where they are not 7."""


def _judgement_line(accepted: bool) -> str:
    return f"Judgement: {'Yes' if accepted else 'No'}"


def _criterion_text(part: Row | str) -> str:
    if isinstance(part, str):
        return part
    return str(part["grading_scheme_desc"])


def corpus_row(raw: Row, index: int) -> Row | Drop:
    marks = raw["score"] if isinstance(raw["score"], list) else [raw["score"]]
    scores = [mark for mark in marks if mark is not None]
    if not scores:
        return Drop("nobody marked the proof")
    return {
        "problem_id": str(raw.get("problem_id", "")),
        "problem": raw["problem"],
        "proof": raw["solution"],
        "expected_judgement": _judgement_line(all(float(score) == 1 for score in scores)),
    }


def arena_row(raw: Row, index: int) -> Row | Drop:
    contest = raw["_file"].partition("_outputs")[0]
    most = _MOST.get(contest.partition("_")[0], 7)
    points = [float(raw[name]) for name in ("points_judge_1", "points_judge_2") if raw.get(name) is not None]
    if not points:
        raise ValueError("no judge gave points")
    if not (clear := {point == most for point in points if point == most or point < most - 1}) or len(clear) > 1:
        return Drop("the judges disagree, or the proof is nearly right")
    return {
        "problem": raw["problem"],
        "proof": without_thinking(raw["answer"]),
        "rubric": "\n".join(f"- {_criterion_text(part)}" for part in raw["grading_details_judge_1"] or ()),
        "expected_judgement": _judgement_line(clear.pop()),
        "subset_for_metrics": contest,
        "metadata": {name: raw[name] for name in ("problem_idx", "model_name") if name in raw},
    }


def bench(raw: Row, index: int) -> Row:
    return {
        "problem_id": str(raw.get("problem_id", "")),
        "problem": raw["problem"],
        "proof": raw["model_solution"],
        "rubric": raw["marking_scheme"],
        "ground_truth_proof": raw["reference_solution"],
        "expected_judgement": _judgement_line(float(raw["expert_rating"]) >= 6),
        "metadata": {name: raw[name] for name in ("expert_rating", "generator") if name in raw},
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
        corpus_row,
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
        arena_row,
        "MathArena",
        "arXiv:2505.23281",
        "Proofs with full points of each judge are right; those that miss one point, or divide judges, are left out.",
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
