# SPDX-License-Identifier: Apache-2.0
"""MRCR of OpenAI: the likeness of a reply that begins with a random text, as the data set's card computes it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.originals import defined

_TEXT = "The old tapir walks by moonlight; where rivers bend, it drinks — and sings (softly) of 12 lost stars."
_SIGNS = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"


def rows() -> Iterator[Row]:
    words = _TEXT.split()
    for seed in range(14):
        draw = random.Random(seed)
        prefix = "".join(draw.choices(_SIGNS, k=10))
        lines = [" ".join(draw.choices(words, k=draw.randint(3, 9))) for _ in range(draw.randint(1, 5))]
        yield {"random_string_to_prepend": prefix, "expected_answer": prefix + "\n".join(lines)}


def forms(row: Row) -> Mapping[str, str]:
    prefix, gold = row["random_string_to_prepend"], row["expected_answer"]
    text = gold.removeprefix(prefix)
    words = text.split()
    return {
        "the same": gold,
        "small letters": prefix + text.lower(),
        "capitals": prefix + text.upper(),
        "a blank behind it": f"{prefix} {text}",
        "a line behind it": f"{prefix}\n{text}",
        "a blank before it": f" {gold}",
        "a line before it": f"\n{gold}",
        "without it": text,
        "it in other letters": prefix.swapcase() + text,
        "it twice": prefix + gold,
        "half of it": prefix[:5] + text,
        "it alone": prefix,
        "it at the end": text + prefix,
        "quotes": f'"{gold}"',
        "a remark after": f"{gold}\n\nIs there anything else?",
        "a remark before": f"Here it is:\n{gold}",
        "first half": prefix + text[: len(text) // 2],
        "second half": prefix + text[len(text) // 2 :],
        "words turned round": prefix + " ".join(reversed(words)),
        "one line": prefix + " ".join(words),
        "twice": f"{gold}\n{text}",
        "without points": prefix + text.replace(".", "").replace(";", ""),
        "other words": f"{prefix}A fox runs home at noon.",
        "in bold": f"{prefix}**{text}**",
        "thought before": f"<think>Which of them?</think>\n\n{gold}",
    }


def original(folder: Path) -> Verdict:
    """The card's own function stands in no repository; HELM's is adapted from it."""
    program = folder / "src" / "helm" / "benchmark" / "metrics" / "openai_mrcr_metrics.py"
    scope: dict[str, Any] = {"SequenceMatcher": SequenceMatcher, "MetricName": str, "CORRECT_TAG": "correct"}
    scope |= {"Stat": lambda name: SimpleNamespace(add=float)}
    evaluate = defined(program, "OpenAIMRCRMetric.evaluate_generation", **scope).evaluate_generation

    def verdict(row: Row, reply: Any) -> float:
        reference = SimpleNamespace(tags=["correct"], output=SimpleNamespace(text=row["expected_answer"]))
        extra = {"random_string_to_prepend": row["random_string_to_prepend"]}
        state = SimpleNamespace(
            result=SimpleNamespace(completions=[SimpleNamespace(text=reply)]),
            instance=SimpleNamespace(references=[reference], extra_data=extra),
        )
        return float(evaluate(None, None, state, None, "")[0])

    return verdict


COMPARISON = Comparison(
    name="mrcr",
    benchmarks=("mrcr",),
    scorer="HELM `openai_mrcr_metrics.py`, adapted from OpenAI's card",
    compared=WHOLE,
    repository="stanford-crfm/helm",
    rows=rows,
    forms=forms,
    original=original,
    known={"thought before": "thoughts are no part of a reply to ours"},
    ours=by_grader("mrcr", value="seq_match_ratio"),
)
