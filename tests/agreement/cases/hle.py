# SPDX-License-Identifier: Apache-2.0
"""Humanity's Last Exam (arXiv:2501.14249): its judge's objects, and the calibration error of many of them."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from newskills.base.judgement import structured_verdict
from newskills.base.records import Row
from newskills.metrics.official.hle import Confidence, calibration_error
from tests.agreement.compare import JUDGED, Comparison, Verdict
from tests.agreement.originals import loaded

_NONE = -1.0
_REASONS = (
    "both are 42",
    'the sign differs: "-1" and 1',
    "no answer is given",
    "{x} and [x] are the same set",
    "ok",
)
_SIZES = (200, 250, 299, 300, 1000)


def rows() -> Iterator[Row]:
    for number, reason in enumerate(_REASONS):
        for verdict in ("yes", "no"):
            yield {"task": "verdict", "correct": verdict, "reason": reason, "percent": 10 * number + 5}
    for size in _SIZES:
        yield {"task": "calibration", "size": size}


def forms(row: Row) -> Mapping[str, Any]:
    if row["task"] == "calibration":
        kinds = {"every confidence another": 40, "whole percents": 5}
        return {
            f"{kind}, {seed}": f"{kind}, {row['size']} {seed}" for kind, n in kinds.items() for seed in range(n)
        }
    fields = {"extracted_final_answer": "42", "reasoning": row["reason"], "correct": row["correct"]}
    whole = {**fields, "confidence": row["percent"], "strict": True}
    return {
        "object": json.dumps(whole),
        "indented": json.dumps(whole, indent=2),
        "blanks around": f"\n {json.dumps(whole)} \n",
        "reversed": json.dumps(dict(reversed(whole.items()))),
        "a field more": json.dumps({**whole, "note": "no"}),
        "a field twice": json.dumps(whole)[:-1] + f', "correct": "{row["correct"]}"}}',
        "no verdict": json.dumps({name: value for name, value in whole.items() if name != "correct"}),
        "other word": json.dumps({**whole, "correct": "maybe"}),
        "null": json.dumps({**whole, "correct": None}),
        "number": json.dumps({**whole, "correct": 1}),
        "empty": "",
        "cut short": json.dumps(whole)[:40],
        "list": json.dumps([whole]),
        "words": f"The verdict is {row['correct']}.",
        "confidence as text": json.dumps({**whole, "confidence": str(row["percent"])}),
        "no confidence": json.dumps(fields),
        "capital": json.dumps({**whole, "correct": row["correct"].capitalize()}),
        "fence": f"```json\n{json.dumps(whole)}\n```",
    }


def drawn(reply: str) -> list[Confidence]:
    kind, _, numbers = reply.partition(", ")
    size = int(numbers.split()[0])
    draw = random.Random(reply)
    skill = draw.random()
    answers = []
    for _ in range(size):
        stated = draw.randint(0, 100) / 100 if kind == "whole percents" else draw.random()
        answers.append(Confidence(stated, draw.random() < skill * (0.5 + stated / 2)))
    return answers


def original(folder: Path) -> Verdict:
    """Needs numpy, pydantic, openai, datasets, httpx and tqdm. The judge says what it is told to."""
    import numpy as np

    sys.path.insert(0, str(folder / "hle_eval"))
    script = loaded(folder / "hle_eval" / "run_judge_results.py")
    script.args = SimpleNamespace(judge="", max_completion_tokens=1)

    def verdict(row: Row, reply: Any) -> float:
        if row["task"] == "calibration":
            stated, right = zip(*drawn(reply), strict=True)
            return float(script.calib_err(np.array(stated), np.array(right), p="2", beta=100))

        async def parse(*, response_format: Any, **_: object) -> Any:
            parsed = response_format.model_validate_json(reply)
            return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(parsed=parsed))])

        completions = SimpleNamespace(completions=SimpleNamespace(parse=parse))
        script.client = SimpleNamespace(beta=SimpleNamespace(chat=completions))
        content = asyncio.run(script.extract_answer("", "", ""))
        return _NONE if content is None else float("yes" in content["correct"])

    return verdict


def ours(row: Row, reply: Any) -> float:
    if row["task"] == "calibration":
        return float(calibration_error(drawn(reply)) or 0.0)
    verdict = structured_verdict(reply)
    return _NONE if verdict is None else float(verdict)


COMPARISON = Comparison(
    name="hle",
    benchmarks=("hle", "hle_verified"),
    scorer="HLE `run_judge_results.py`, in a fork",
    compared=JUDGED,
    repository="kflu/hle",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={
        "verdict/no confidence": "the original wants every field of its schema; ours takes the verdict alone",
        "verdict/capital": "the original's schema knows `yes` and `no` only; a judge without one may write `Yes`",
        "verdict/fence": "the original asks a server that cannot write a fence; ours reads judges of any server",
    },
)
