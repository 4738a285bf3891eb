# SPDX-License-Identifier: Apache-2.0
"""Questions at the frontier of knowledge (Phan et al. 2025, arXiv:2501.14249), and their checked form (2602.13964)."""

import json
from functools import partial

from msgspec.structs import replace

from newskills.base.benchmark import OTHER_SPLIT, Benchmark, Drop, Judge, RowMapper, Source
from newskills.base.records import Row

_CATEGORIES = {
    "math": "Math",
    "phy": "Physics",
    "cs": "Computer Science/AI",
    "bio": "Biology/Medicine",
    "chem": "Chemistry",
    "eng": "Engineering",
    "human": "Humanities/Social Science",
    "other": "Other",
}
_CLASSES = ("Gold", "Revision", "Uncertain")
_JUDGE = Judge(prompt="judge/hle", model="o3-mini-2025-01-31", server_type="openai")
_IMAGES = Drop("it needs an image")


def row(raw: Row, index: int) -> Row | Drop:
    if raw["image"]:
        return _IMAGES
    return {
        "id": raw["id"],
        "problem": raw["question"],
        "expected_answer": raw["answer"],
        "answer_type": raw["answer_type"],
        "reference_solution": raw["rationale"],
        "raw_subject": raw["raw_subject"],
        "subset_for_metrics": raw["category"],
        **{key: raw[key] for key in ("author_name", "canary") if key in raw},
    }


def verified_row(raw: Row, index: int) -> Row | Drop:
    """Return what `row` makes, with the class that the check gave; older fields may lie in a column of JSON text."""
    if isinstance(raw.get("json"), str):
        raw = {**json.loads(raw["json"]), **raw}
    made = row(raw, index)
    if isinstance(made, Drop):
        return made
    name = next(key for key in raw if key.lower().replace(" ", "_").startswith("verified_class"))
    return made | {"verified_class": str(raw[name]).split()[0]}


def _subset_row(mapper: RowMapper, field: str, value: str, raw: Row, index: int) -> Row | Drop:
    made = mapper(raw, index)
    if isinstance(made, Drop):
        return made
    assert isinstance(made, dict)
    if made[field] == value:
        return made
    return OTHER_SPLIT


def _by_category(mapper: RowMapper) -> dict[str, RowMapper]:
    return {split: partial(_subset_row, mapper, "subset_for_metrics", name) for split, name in _CATEGORIES.items()}


def _benchmark(
    name: str, title: str, source: Source, mapper: RowMapper, variants: dict[str, RowMapper]
) -> Benchmark:
    return Benchmark(
        name=name,
        category="science",
        title=title,
        aliases=("ns_hle", "ns_hle_aa") if name == "hle" else (),
        sources=tuple(replace(source, split=split) for split in ("text", *variants)),
        row=mapper,
        variants=variants,
        prompt="generic/hle",
        grader="",
        metric="hle",
        judge=_JUDGE,
        split="text",
        licence="MIT" if name == "hle" else "CC-BY-4.0",
        homepage=f"https://huggingface.co/datasets/{source.hf}",
        citation="arXiv:2501.14249" if name == "hle" else "arXiv:2602.13964",
        unverified=True,
        traps=(
            "Questions with an image are left out: scores are those of the text-only part.",
            "The judge sees the whole reply; another judge gives another score.",
            "`calibration_error`, as the authors' script has it, is given from 200 answers on.",
            "The canary must stay out of prompts and of training data.",
        ),
    )


BENCHMARKS = (
    _benchmark(
        "hle",
        "Humanity's Last Exam, text only",
        Source(hf="cais/hle", hf_split="test", gated=True, note="https://huggingface.co/datasets/cais/hle"),
        row,
        _by_category(row),
    ),
    _benchmark(
        "hle_verified",
        "Humanity's Last Exam, checked and revised, text only",
        Source(hf="skylenage/HLE-Verified", hf_split="train"),
        verified_row,
        _by_category(verified_row)
        | {name.lower(): partial(_subset_row, verified_row, "verified_class", name) for name in _CLASSES},
    ),
)
