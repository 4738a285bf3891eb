# SPDX-License-Identifier: Apache-2.0
"""BIG-Bench Hard as lm-evaluation-harness scores it: what follows "the answer is", letter for letter."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.originals import loaded

_GOLDS = (
    *("(A)", "(B)", "(F)", "yes", "no", "True", "False", "Yes", "No", "valid", "invalid", "24", "-50", "0", "7"),
    *("plausible", "implausible", "] ] >", "} ) >", "apple bear zebra", "cat dog elephant fox"),
)
_OTHERS = {"(A)": "(B)", "(B)": "(C)", "(F)": "(A)", "yes": "no", "no": "yes", "True": "False", "False": "True"}


def rows() -> Iterator[Row]:
    for gold in _GOLDS:
        yield {"expected_answer": gold}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    replies: dict[str, str] = {}
    for kind, answer in (
        ("right", gold),
        ("wrong", _OTHERS.get(gold, f"{gold} ]" if "]" in gold else f"un{gold}")),
    ):
        replies |= {
            f"{kind} sentence": f"Let's think step by step.\nSo the answer is {answer}.",
            f"{kind} short": f"The others do not fit, so the answer is {answer}.",
            f"{kind} bold": f"So the answer is **{answer}**.",
            f"{kind} box": f"So the answer is \\boxed{{{answer}}}.",
            f"{kind} capitals": f"So the answer is {answer.upper()}.",
            f"{kind} label": f"Answer: {answer}",
        }
    return replies | {
        "nothing": "I do not know.",
        "part": f"So the answer is {gold[:1]}.",
        "two answers": f"So the answer is 99. No, the answer is {gold}.",
        "a word more": f"So the answer is {gold} indeed.",
    }


def original(folder: Path) -> Verdict:
    stands: dict[str, Any] = {
        "lm_eval": types.ModuleType("lm_eval"),
        "lm_eval.api": types.ModuleType("lm_eval.api"),
        "lm_eval.api.filter": types.SimpleNamespace(Filter=object),
        "lm_eval.api.registry": types.SimpleNamespace(register_filter=lambda name: lambda kind: kind),
    }
    sys.modules.update(stands)
    regex_filter = loaded(folder / "lm_eval" / "filters" / "extraction.py").RegexFilter
    file = folder / "lm_eval" / "tasks" / "bbh" / "cot_fewshot" / "_cot_fewshot_template_yaml"
    settings = yaml.safe_load(file.read_text(encoding="utf-8"))["filter_list"][0]["filter"][0]
    extract = regex_filter(settings["regex_pattern"])

    def verdict(row: Row, reply: Any) -> float:
        return float(extract.apply([[reply]], [{}])[0][0] == row["expected_answer"])

    return verdict


_FORM = "the original reads a sentence without mark-up only; ours the forms that models write"
COMPARISON = Comparison(
    name="bbh",
    benchmarks=("bbh",),
    scorer="lm-evaluation-harness, `bbh/cot_fewshot`",
    compared=WHOLE,
    repository="EleutherAI/lm-evaluation-harness",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("exact", {"extract": "answer", "loose": True}),
    known={
        "right bold": _FORM,
        "right box": _FORM,
        "right label": _FORM,
        "right capitals": "the original minds case; ours does not, unless it is strict",
        "two answers": "the original takes all that follows the first `the answer is`; ours the last answer",
        "a word more": "a letter in brackets is an option, whatever follows",
    },
)
