# SPDX-License-Identifier: Apache-2.0
"""BIG-Bench Extra Hard (arXiv:2502.19187): the text behind "The answer is:", loosely."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.originals import loaded

_GOLDS = (
    "(A)", "4", "25.0", "-17", "yes", "no", "unknown", "2, 3, 4", "proved", "ambiguous", "Kyoto, Osaka", "[1, 5]",
    "0.5", "left right up", "(c)", "1,204",
)  # fmt: skip
_THOUGHT = "Let me see. There are 3 steps, and in the 2nd one I go left.\n"


def rows() -> Iterator[Row]:
    for gold in _GOLDS:
        yield {"expected_answer": gold}


def forms(row: Row) -> Mapping[str, str]:
    gold = row["expected_answer"]
    said = f"{_THOUGHT}The answer is: "
    return {
        "as wanted": f"{said}{gold}",
        "point": f"{said}{gold}.",
        "bold": f"{said}**{gold}**",
        "box": f"{said}$\\boxed{{{gold}}}$",
        "box of text": f"{said}\\boxed{{\\text{{{gold}}}}}",
        "final answer": f"{_THOUGHT}The final answer is: {gold}",
        "final answer, no colon": f"{_THOUGHT}The final answer is {gold}",
        "no colon": f"{_THOUGHT}The answer is {gold}.",
        "capitals": f"{said}{gold.upper()}",
        "remark after": f"{said}{gold}\nI hope this helps!",
        "quotes": f"{said}'{gold}'",
        "brackets": f"{said}[{gold}]",
        "round brackets": f"{said}({gold})",
        "bare letter": f"{said}{gold.strip('()')}",
        "decimals": f"{said}{gold}.0",
        "no blanks": f"{said}{gold.replace(', ', ',')}",
        "question mark": f"{said}{gold}?",
        "changed": f"The answer is: 77\nNo, wait.\nThe answer is: {gold}",
        "after thinking": f"<think>The answer is: 77</think>\n\nThe answer is: {gold}",
        "another": f"{said}perhaps",
        "another number": f"{said}18",
        "reversed": f"{said}{', '.join(reversed(gold.split(', ')))}",
        "a word more": f"{said}{gold} indeed",
        "nothing": f"{_THOUGHT}I cannot say",
    }


def original(folder: Path) -> Verdict:
    with contextlib.redirect_stdout(io.StringIO()):
        same = loaded(folder / "bbeh" / "evaluate.py").evaluate_correctness

    def verdict(row: Row, reply: Any) -> float:
        return float(same(reply, row["expected_answer"]))

    return verdict


COMPARISON = Comparison(
    name="bbeh",
    benchmarks=("bbeh-mini",),
    scorer="BBEH `evaluate.py`",
    compared=WHOLE,
    repository="google-deepmind/bbeh",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("exact", {"extract": "answer", "loose": True}),
    known={
        **dict.fromkeys(
            ("quotes", "decimals", "question mark", "a word more"),
            "an option in brackets counts whatever is around it; 1,204.0 is 1,204",
        ),
        "round brackets": "brackets around one word are dress to ours, as they are to the original around one letter",
        "brackets": "ours takes a list in a list for another answer",
    },
)
