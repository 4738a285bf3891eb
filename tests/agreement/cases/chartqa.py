# SPDX-License-Identifier: Apache-2.0
"""ChartQA (arXiv:2203.10244): relaxed accuracy, numbers within 5 %, texts that are equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import ANSWERS, Comparison, Verdict, by_grader
from tests.agreement.originals import loaded

_GOLDS = (
    *("12", "0.57", "1987", "-3.5", "62%", "1200", "0.004", "100", "3", "45.8", "7.25", "250000", "1.5%"),
    *("Yes", "No", "Brazil", "dark blue", "Light Brown", "2011-2015", "Strongly agree", "Q3", "[4, 6]"),
)


def rows() -> Iterator[Row]:
    for gold in _GOLDS:
        yield {"expected_answer": gold}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    number = gold.removesuffix("%").replace(".", "").removeprefix("-").isdigit()
    answers = {
        "the same": gold,
        "small letters": gold.lower(),
        "capitals": gold.upper(),
        "another": "Iceland",
        "another number": "918273",
        "empty": "none",
        "part": gold[:1] if len(gold) > 1 else "x",
        "a word more": f"{gold} indeed",
        "no": "No",
        "yes": "Yes",
    }
    if number:
        mark, value = "%" if gold.endswith("%") else "", float(gold.removesuffix("%"))
        for form, factor in (("4 % more", 1.04), ("4 % less", 0.96), ("6 % more", 1.06), ("6 % less", 0.94)):
            answers[form] = f"{value * factor:.6g}{mark}"
        answers |= {
            "two decimals": f"{value:.2f}{mark}",
            "other sign": f"{-value:g}{mark}",
            "tenfold": f"{value * 10:g}{mark}",
            "percent": f"{value:g}" if mark else f"{value:g}%",
            "blank before it": f" {gold}",
        }
    return {form: f"The chart shows it.\n\\boxed{{{text}}}" for form, text in answers.items()}


def original(folder: Path) -> Verdict:
    """Needs numpy, and the names of `vlmeval.smp` that the file imports, whatever they are."""
    relaxed = loaded(folder / "vlmeval" / "dataset" / "utils" / "vqa_eval.py").relaxed_correctness

    def verdict(row: Row, reply: Any) -> float:
        return float(relaxed(row["expected_answer"], str(reply).partition("\\boxed{")[2][:-1]))

    return verdict


COMPARISON = Comparison(
    name="chartqa",
    benchmarks=("chartqa",),
    scorer="Relaxed accuracy of VLMEvalKit `vqa_eval.py`",
    compared=ANSWERS,
    repository="open-compass/VLMEvalKit",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("math", {"relative_tolerance": 0.05}),
    known={
        "a word more": "a word after a value is its unit to ours",
        "percent": "the original takes `12%` for 0.12; to ours the sign is the unit of the chart's numbers",
        "small letters": "to ours, `Q3` and `q3` are two symbols",
    },
)
