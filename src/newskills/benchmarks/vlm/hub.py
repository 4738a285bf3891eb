# SPDX-License-Identifier: Apache-2.0
"""Questions about pictures whose data lie on the Hugging Face hub, pictures and all."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

from newskills.base.benchmark import Benchmark, Drop, Source
from newskills.base.records import Row
from newskills.benchmarks.media import embedded_asset
from newskills.benchmarks.text import choices

_SUBJECTS = (
    "Accounting,Agriculture,Architecture_and_Engineering,Art,Art_Theory,Basic_Medical_Science,Biology,Chemistry,"
    "Clinical_Medicine,Computer_Science,Design,Diagnostics_and_Laboratory_Medicine,Economics,Electronics,"
    "Energy_and_Power,Finance,Geography,History,Literature,Manage,Marketing,Materials,Math,Mechanical_Engineering,"
    "Music,Pharmacy,Physics,Psychology,Public_Health,Sociology"
)
_FORMULAS = "Handwritten Mathematical Expression Recognition"
_OPEN = Drop("open questions, which have no options")


def parse_options(options: Any) -> list[str]:
    """Return options that are a list, or a list written as a text. Raises ValueError."""
    parsed = options
    if isinstance(options, str):
        try:
            parsed = ast.literal_eval(options)
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise ValueError(f"{options!r} is not a list of options") from error
    if not isinstance(parsed, Sequence) or isinstance(parsed, str):
        raise ValueError(f"{options!r} is not a list of options")
    return [str(option) for option in parsed]


def mmmu_pro(raw: Row, index: int) -> Row:
    return {
        "id": raw["id"],
        **choices("The question is in the picture.", parse_options(raw["options"])),
        "expected_answer": raw["answer"],
        "image_path": embedded_asset(raw["image"], raw["id"]),
        "subset_for_metrics": raw["subject"],
    }


def mmmu_pro_standard(raw: Row, index: int) -> Row:
    """Return the question as text, with the pictures that it and its options name by their numbers."""
    pictures = {n: raw[f"image_{n}"] for n in range(1, 8) if raw.get(f"image_{n}") is not None}
    return {
        "id": raw["id"],
        "question": raw["question"],
        **choices(raw["question"], parse_options(raw["options"])),
        "dotted_options": "".join(
            f"{letter}. {option}\n"
            for letter, option in zip(ascii_uppercase, parse_options(raw["options"]), strict=False)
        ),
        "expected_answer": raw["answer"],
        "image_path": [embedded_asset(picture, f"{raw['id']}-{n}") for n, picture in pictures.items()],
        "subset_for_metrics": raw["subject"],
    }


def mmmu_row(raw: Row, index: int) -> Row | Drop:
    if raw["question_type"] != "multiple-choice":
        return _OPEN
    pictures = [raw[f"image_{n}"] for n in range(1, 8) if raw.get(f"image_{n}") is not None]
    return {
        "id": raw["id"],
        "question": raw["question"],
        **choices(raw["question"], parse_options(raw["options"])),
        "expected_answer": raw["answer"],
        "image_path": [embedded_asset(picture, f"{raw['id']}-{n}") for n, picture in enumerate(pictures, 1)],
        "subset_for_metrics": raw["id"].removeprefix("validation_").rpartition("_")[0],
    }


def mathvista_row(raw: Row, index: int) -> Row:
    question, answer = raw["question"], str(raw["answer"])
    fields: Row = {"problem": question}
    if raw["unit"]:
        fields["problem"] += f"\n(The unit is {raw['unit']}.)"
    if raw["question_type"] == "multi_choice":
        fields, answer = choices(question, raw["choices"]), "ABCDEFGH"[raw["choices"].index(answer)]
    elif raw["precision"] is not None and raw["answer_type"] == "float":
        fields["problem"] += f"\nGive {int(raw['precision'])} decimal places."
    return {
        "id": f"mathvista-{raw['pid']}",
        "question": question,
        **fields,
        "expected_answer": answer,
        "answer_type": raw["answer_type"],
        "precision": raw["precision"],
        "image_path": embedded_asset(raw.get("decoded_image") or raw["image"], raw["pid"]),
        "subset_for_metrics": raw["question_type"],
    }


def chartqa_row(raw: Row, index: int) -> Row:
    answer = raw["answer"]
    if isinstance(answer, list):
        answer = answer[0]
    return {
        "id": f"chartqa-{index}",
        "question": raw["question"],
        "problem": raw["question"],
        "expected_answer": str(answer),
        "image_path": embedded_asset(raw["image"], str(index)),
        "subset_for_metrics": raw["type"],
    }


def ai2d_row(raw: Row, index: int) -> Row:
    options = parse_options(raw["options"])
    return {
        "id": f"ai2d-{index}",
        "question": raw["question"],
        **choices(raw["question"], options),
        "expected_answer": "ABCDEFGH"[range(len(options))[int(raw["answer"])]],
        "image_path": embedded_asset(raw["image"], str(index)),
    }


def read_text(raw: Row, index: int) -> Row:
    """Map a row of OCRBench or DocVQA, where several texts are right."""
    raw_answers = raw["answers"] if "answers" in raw else raw["answer"]
    if isinstance(raw_answers, str):
        raw_answers = [raw_answers]
    first, *others = dict.fromkeys(map(str, raw_answers))
    kind = raw["question_type"] if "question_type" in raw else (raw["question_types"] or ["other"])[0]
    fields = {
        "id": f"{raw['questionId']}" if "questionId" in raw else f"ocrbench-{index}",
        "question": raw["question"],
        "problem": raw["question"],
        "expected_answer": first,
        "accepted_answers": others,
        "image_path": embedded_asset(raw["image"], str(index)),
        "subset_for_metrics": str(kind),
    }
    if kind == _FORMULAS:
        fields["formula"] = True
    return fields


def _benchmark(name: str, title: str, source: Source, **more: Any) -> Benchmark:
    return Benchmark(
        name=name,
        category="vlm",
        title=title,
        sources=(source,),
        split=source.split,
        homepage=f"https://huggingface.co/datasets/{source.hf}",
        requires="newskills[media]",
        unverified=True,
        **more,
    )


_CHOICE: dict[str, Any] = {"prompt": "vlm/mmmu-pro", "grader": "multichoice", "metric": "multichoice"}
_MMMU_PRO: dict[str, Any] = {
    **_CHOICE,
    "items": {"test": 1730},
    "chance": 0.11,
    "licence": "Apache-2.0",
    "citation": "arXiv:2409.02813",
}
_READING: dict[str, Any] = {
    "row": read_text,
    "prompt": "vlm/default",
    "grader": "short_answer",
    "grader_config": {"measure": "anls"},
    "metric": "short_answer",
    "headline": "`anls`: mean likeness of the answer and the closest right text (normalised Levenshtein)",
}
BENCHMARKS = (
    _benchmark(
        "mmmu-pro",
        "MMMU-Pro: the question is in the picture, ten options",
        Source(hf="MMMU/MMMU_Pro", config="vision"),
        **_MMMU_PRO,
        aliases=("mmmu_pro", "ns_mmmu_pro"),
        row=mmmu_pro,
        traps=(
            "The part in which the question is in the picture, too: the paper's overall score is the mean of it and of "
            "the same questions as text, `mmmu-pro-standard`; `mmmu-pro-overall` evaluates both.",
        ),
    ),
    _benchmark(
        "mmmu-pro-standard",
        "MMMU-Pro, the questions as text, with up to ten options",
        Source(hf="MMMU/MMMU_Pro", config="standard (10 options)"),
        **_MMMU_PRO,
        row=mmmu_pro_standard,
        traps=(
            "Half of the paper's overall score, which is the mean of it and of `mmmu-pro`, the questions as pictures; "
            "`mmmu-pro-overall` evaluates both.",
            "All pictures of a question stand before the text; marks such as <image 1> tell them apart.",
        ),
    ),
    _benchmark(
        "mmmu",
        "MMMU: 30 college subjects",
        Source(split="validation", hf="MMMU/MMMU", config=f"{{{_SUBJECTS}}}"),
        **_CHOICE,
        row=mmmu_row,
        chance=0.25,
        licence="Apache-2.0",
        citation="arXiv:2311.16502",
        traps=(
            "Of the 900 validation questions the open ones, about one in 17, are left out: no letter answers them.",
            "All pictures of a question stand before the text; marks such as <image 1> tell them apart.",
        ),
    ),
    _benchmark(
        "mathvista",
        "MathVista: mathematics in pictures",
        Source(split="testmini", hf="AI4Math/MathVista"),
        row=mathvista_row,
        prompt="vlm/math",
        grader="mathvista",
        items={"testmini": 1000},
        licence="CC-BY-SA-4.0",
        citation="arXiv:2310.02255",
        version="2",
        traps=(
            "The paper lets a model extract answers; here they are boxed, and normalised as in its script.",
            "Version 2: options by their text, decimals with more places and integers with a fraction count as there.",
        ),
    ),
    _benchmark(
        "chartqa",
        "ChartQA: questions about charts",
        Source(hf="lmms-lab/ChartQA"),
        row=chartqa_row,
        prompt="vlm/math",
        grader_config={"relative_tolerance": 0.05},
        items={"test": 2500},
        licence="GPL-3.0",
        citation="arXiv:2203.10244",
        traps=(
            "Numbers may be off by 5% of the right one (relaxed accuracy), years included.",
            "The answer has to be boxed, so the prompt is vlm/math.",
        ),
    ),
    _benchmark(
        "ai2d",
        "AI2D: diagrams of school science",
        Source(hf="lmms-lab/ai2d"),
        **_CHOICE,
        row=ai2d_row,
        items={"test": 3088},
        chance=0.25,
        licence="unstated",
        citation="arXiv:1603.07396",
    ),
    _benchmark(
        "ocrbench",
        "OCRBench: text in pictures",
        Source(hf="echo840/OCRBench"),
        **_READING
        | {
            "grader_config": {"measure": "contained"},
            "hedgeable": "a right text may stand anywhere in a reply, as the authors score it",
            "headline": "`contained`: share of replies that contain a right answer; the authors show it of 1,000",
        },
        items={"test": 1000},
        licence="MIT",
        citation="arXiv:2305.07895",
        traps=(
            "The authors' rule, so long replies that name much score more; `++eval_config.measure=anls` is stricter.",
            "Formulas are compared but for blanks, minding case; other texts but for case.",
        ),
    ),
    _benchmark(
        "docvqa",
        "DocVQA: questions about scanned documents",
        Source(split="validation", hf="lmms-lab/DocVQA", config="DocVQA"),
        **_READING,
        items={"validation": 5349},
        licence="unstated",
        citation="arXiv:2007.00398",
        traps=("Answers count as correct from ANLS 0.5 on; the score is the mean ANLS.",),
    ),
)
