# SPDX-License-Identifier: Apache-2.0
"""GAIA (arXiv:2311.12983): numbers, lists and words as its leaderboard's scorer compares them."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import ANSWERS, Comparison, Verdict, by_grader
from tests.agreement.originals import loaded

_LABEL = "FINAL ANSWER: "
_GOLDS = (
    "17", "3.14", "1200", "-5", "0.5", "Paris", "Saint Petersburg", "St. John's", "red, green, blue", "1; 2; 3",
    "a, 2, c", "egalitarian", "FunkMonk", "+4.6", "80GSFC21M0002", "THE CASTLE", "Rd5", "1e3", "4, 4", "b; e",
)  # fmt: skip


def rows() -> Iterator[Row]:
    for gold in _GOLDS:
        yield {"expected_answer": gold}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    answers = {
        "the same": gold,
        "small letters": gold.lower(),
        "capitals": gold.upper(),
        "dollars": f"${gold}",
        "percent": f"{gold}%",
        "unit": f"{gold} km",
        "decimals": f"{gold}.0",
        "thousands": f"{gold[:1]},{gold[1:]}",
        "no blanks": gold.replace(" ", ""),
        "more blanks": gold.replace(" ", "  "),
        "hyphens": gold.replace(" ", "-"),
        "semicolons": gold.replace(",", ";"),
        "commas": gold.replace(";", ","),
        "reversed": ", ".join(reversed(gold.replace(";", ",").split(", "))),
        "an item more": f"{gold}, 7",
        "point": f"{gold}.",
        "quotes": f"'{gold}'",
        "article": f"the {gold}",
        "another": "London",
        "another number": "18",
    }
    return {form: f"{_LABEL}{answer}" for form, answer in answers.items()}


def original(folder: Path) -> Verdict:
    scorer = loaded(folder / "evalscope" / "benchmarks" / "gaia" / "scorer.py").question_scorer

    def verdict(row: Row, reply: Any) -> float:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            result = scorer(str(reply).removeprefix(_LABEL), row["expected_answer"])
        return float(result[0] if isinstance(result, tuple) else result)

    return verdict


COMPARISON = Comparison(
    name="gaia",
    benchmarks=("gaia",),
    scorer="GAIA's `question_scorer`, its copy in EvalScope",
    compared=ANSWERS,
    repository="modelscope/evalscope",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("gaia"),
)
