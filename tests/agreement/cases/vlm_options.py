# SPDX-License-Identifier: Apache-2.0
"""Questions about images with options, as VLMEvalKit reads replies before it asks a judge."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import EXTRACTION, Comparison, Verdict, by_grader
from tests.agreement.letters import letter_forms
from tests.agreement.originals import loaded

_OPTIONS = (
    {"A": "The red ball", "B": "The blue box", "C": "The green cup", "D": "The yellow hat"},
    {"A": "rises", "B": "falls", "C": "stays the same", "D": "cannot be known"},
    {"A": "14 cm", "B": "17 cm", "C": "20 cm", "D": "23 cm"},
)


def rows() -> Iterator[Row]:
    for options in _OPTIONS:
        for letter in options:
            yield {**options, "expected_answer": letter}


def original(folder: Path) -> Verdict:
    """A reply that it leaves to a judge has no verdict."""
    for name in ("vlmeval", "vlmeval.smp", "vlmeval.smp.log"):
        sys.modules[name] = ModuleType(name)
    sys.modules["vlmeval.smp.log"].get_logger = lambda name: SimpleNamespace()  # type: ignore[attr-defined]
    infer = loaded(folder / "vlmeval" / "utils" / "matching_util.py").can_infer

    def verdict(row: Row, reply: Any) -> float | None:
        letter = infer(reply, {letter: row[letter] for letter in "ABCD"})
        return float(letter == row["expected_answer"]) if letter else None

    return verdict


COMPARISON = Comparison(
    name="vlmevalkit-options",
    benchmarks=("mmstar", "mmbench", "mmbench-cn", "ai2d", "video-mme"),
    scorer="VLMEvalKit `matching_util.py`",
    compared=EXTRACTION,
    repository="open-compass/VLMEvalKit",
    rows=rows,
    forms=letter_forms,
    original=original,
    ours=by_grader("multichoice"),
    known={"cut off": "the original takes a letter among the last words of a reply, finished or not"},
)
