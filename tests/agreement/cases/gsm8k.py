# SPDX-License-Identifier: Apache-2.0
"""GSM8K as lm-evaluation-harness scores it: `strict-match` behind `####`, `flexible-extract` for any last number."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.originals import loaded

_GOLDS = ("18", "3", "70000", "540", "1200", "64", "260", "5", "366", "25", "1000000", "10")
_SOLUTION = "She has 16 eggs, eats 3 and bakes with 4.\n"


def rows() -> Iterator[Row]:
    for filter_name in ("strict-match", "flexible-extract"):
        for gold in _GOLDS:
            yield {"task": filter_name, "expected_answer": gold}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    replies: dict[str, str] = {}
    for kind, number in (("right", gold), ("wrong", str(int(gold) + 1))):
        thousands = f"{int(number):,}"
        replies |= {
            f"{kind} marked": f"{_SOLUTION}#### {number}",
            f"{kind} marked with commas": f"{_SOLUTION}#### {thousands}",
            f"{kind} marked and dollars": f"{_SOLUTION}#### ${number}",
            f"{kind} sentence": f"{_SOLUTION}The answer is {number}.",
            f"{kind} dollars": f"{_SOLUTION}The answer is ${thousands}.",
            f"{kind} box": f"{_SOLUTION}\\boxed{{{number}}}",
            f"{kind} unit": f"{_SOLUTION}The answer is {number} eggs.",
        }
    return replies | {"nothing": "I do not know.", "negative": f"{_SOLUTION}#### -{gold}"}


def original(folder: Path) -> Verdict:
    """Filters and what is ignored are those of `gsm8k.yaml`; the harness's registry of filters is not needed."""
    stands: dict[str, Any] = {
        "lm_eval": types.ModuleType("lm_eval"),
        "lm_eval.api": types.ModuleType("lm_eval.api"),
        "lm_eval.api.filter": types.SimpleNamespace(Filter=object),
        "lm_eval.api.registry": types.SimpleNamespace(register_filter=lambda name: lambda kind: kind),
    }
    sys.modules.update(stands)
    regex_filter = loaded(folder / "lm_eval" / "filters" / "extraction.py").RegexFilter
    task = yaml.safe_load((folder / "lm_eval" / "tasks" / "gsm8k" / "gsm8k.yaml").read_text(encoding="utf-8"))
    ignored = task["metric_list"][0]["regexes_to_ignore"]
    filters = {}
    for entry in task["filter_list"]:
        options = {key: value for key, value in entry["filter"][0].items() if key != "function"}
        filters[entry["name"]] = regex_filter(**options)

    def plain(text: str) -> str:
        for pattern in ignored:
            text = re.sub(pattern, "", text)
        return text.lower()

    def verdict(row: Row, reply: Any) -> float:
        extracted = filters[row["task"]].apply([[reply]], [{}])[0][0]
        return float(plain(extracted) == plain(f"#### {row['expected_answer']}"))

    return verdict


_OTHER_FORM = "`strict-match` reads what follows `####` only; ours any answer that the reply gives"
COMPARISON = Comparison(
    name="gsm8k",
    benchmarks=("gsm8k",),
    scorer="lm-evaluation-harness, `gsm8k.yaml`",
    compared=WHOLE,
    repository="EleutherAI/lm-evaluation-harness",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("math"),
    known={
        f"strict-match/right {form}": _OTHER_FORM
        for form in ("marked and dollars", "sentence", "dollars", "box", "unit")
    },
)
