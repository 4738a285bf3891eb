# SPDX-License-Identifier: Apache-2.0
"""MathVerse (arXiv:2403.14624): 1 or 0 of its judge, and the accuracy of all problems and of each version of them."""

from __future__ import annotations

import contextlib
import io
import json
import random
import runpy
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

from newskills.base.records import Row
from newskills.metrics import make_metric
from tests.agreement.compare import JUDGED, Comparison, Verdict
from tests.agreement.originals import loaded
from tests.graders.plain import plain_grader

_VERSIONS = ("Text Dominant", "Text Lite", "Vision Intensive", "Vision Dominant", "Vision Only")
_REASONS = (
    "Both are 22.3.",
    "The letter is B, that of 2√3 cm.",
    "Model_answer is null.",
    "0.5 m is 50 cm",
    "The interval is closed on the left: [1, 0]",
)
_PROBLEMS = 12
_NONE = -1.0
"""In place of a score: no verdict, and the original asks again."""


def rows() -> Iterator[Row]:
    for digit in "10":
        for reason in _REASONS:
            yield {"task": "judge", "digit": digit, "reason": reason}
    for seed in range(32):
        yield {"task": "figures", "seed": seed}


def forms(row: Row) -> Mapping[str, Any]:
    if row["task"] == "figures":
        return {figure: [figure, _judgements(row["seed"])] for figure in ("all", *_VERSIONS)}
    digit, reason = row["digit"], row["reason"]
    return {
        "label": f"Judgement: {digit}",
        "label, blanks": f"\n Judgement:  {digit} \n",
        "label, no blank": f"Judgement:{digit}",
        "label, next line": f"Judgement:\n{digit}",
        "alone": digit,
        "reasons before": f"{reason}\nJudgement: {digit}",
        "reasons after": f"Judgement: {digit}\n{reason}",
        "point": f"Judgement: {digit}.",
        "as ours asks": f"{reason}\nJudgement: {'Yes' if digit == '1' else 'No'}",
        "another number": "Judgement: 2",
        "two digits": "Judgement: 10",
        "nothing": reason,
        "cut off": "Judgement:",
    }


def _judgements(seed: int) -> list[list[int]]:
    """Problem by problem, which of the five versions are right; some models solve all or none."""
    draw = random.Random(seed)
    level = {0: 1.0, 1: 0.0}.get(seed % 10, draw.random())
    falls = [level - 0.1 * place * draw.random() for place in range(len(_VERSIONS))]
    return [[int(draw.random() < chance) for chance in falls] for _ in range(_PROBLEMS)]


def ours(row: Row, reply: Any) -> float:
    grader = plain_grader("judgement", {})
    if row["task"] == "judge":
        verdict = grader.grade({"judgement": reply}).fields["judge_correct"]
        return _NONE if verdict is None else float(verdict)
    figure, judgements = reply
    metric = make_metric("macro")
    for problem in judgements:
        for version, right in zip(_VERSIONS, problem, strict=True):
            if figure in ("all", version):
                fields = grader.grade({"judgement": f"Judgement: {right}", "generation": "text"}).fields
                metric.update([{"subset_for_metrics": version, **fields}])
    return metric.numbers()["pass@1"]["macro_accuracy"].value / 100


class _AskedAgain(BaseException):
    """Passes by the original, which takes every error for an empty text."""


def original(folder: Path) -> Verdict:
    """Needs tqdm, Pillow and openai, of which nothing is asked: the judge says what it is told to."""
    program = folder / "evaluation" / "score_answer_s2.py"
    utils: Any = loaded(program.with_name("utils.py"))
    prompts: ModuleType = loaded(program.with_name("prompts.py"))

    def verdict(row: Row, reply: Any) -> float:
        if row["task"] == "judge":
            try:
                printed = _printed(program, {"utils": utils, "prompts": prompts}, [("Text Lite", reply)])
            except _AskedAgain:
                return _NONE
            return _figure(printed, "Acc")
        figure, judgements = reply
        texts = [
            (version, str(right))
            for problem in judgements
            for version, right in zip(_VERSIONS, problem, strict=True)
        ]
        printed = _printed(program, {"utils": utils, "prompts": prompts}, texts)
        return _figure(printed, "Acc" if figure == "all" else f"{figure} Acc")

    return verdict


def _figure(printed: str, name: str) -> float:
    return float(next(line for line in printed.splitlines() if line.startswith(f"{name}:")).rpartition(" ")[2])


def _printed(program: Path, modules: dict[str, Any], texts: list[tuple[str, str]]) -> str:
    """What the program says of problems, each with its version and what the judge says of it."""
    samples = [
        {
            "question": f"Problem {place}?",
            "answer": "A",
            "extraction": "B",
            "problem_version": version,
            "category": {"subject": "Functions", "subfield": "Property"},
        }
        for place, (version, _) in enumerate(texts)
    ]
    replies = iter(text for _, text in texts)

    def asked(prompt: str, key: str) -> str:
        if (text := next(replies, None)) is None:
            raise _AskedAgain
        return text

    with tempfile.TemporaryDirectory() as place:
        extracted, saved = Path(place, "extracted.json"), Path(place, "saved.json")
        extracted.write_text(json.dumps(samples))
        argv = [str(program), "--answer_extraction_file", str(extracted), "--save_file", str(saved)]
        with (
            mock.patch.object(modules["utils"], "get_chat_response", asked),
            mock.patch.dict(sys.modules, modules),
            mock.patch.object(sys, "argv", argv),
            contextlib.redirect_stdout(io.StringIO()) as printed,
        ):
            runpy.run_path(str(program), run_name="__main__")
    return printed.getvalue()


COMPARISON = Comparison(
    name="mathverse",
    benchmarks=("mathverse",),
    scorer="MathVerse `score_answer_s2.py`",
    compared=JUDGED,
    repository="ZrrSkywalker/MathVerse",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={
        "judge/alone": "a bare digit might be points; the original asks for 1 or 0, ours for yes or no",
        "judge/reasons before": "the original asks again until its judge writes the digit only",
        "judge/point": "the original asks again until its judge writes the digit only",
        "judge/as ours asks": "the original asks for 1 or 0, ours for yes or no",
    },
    left_out=(
        "the GPT that takes the answer out of a reply before it is judged; ours shows the judge the reply. "
        "Scores of steps (CoT-E) were never published as code."
    ),
)
