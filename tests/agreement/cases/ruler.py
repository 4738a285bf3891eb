# SPDX-License-Identifier: Apache-2.0
"""RULER (arXiv:2404.06654): the share of right texts that occur, or whether any does."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader

_WORDS = ["amber", "Basil", "CEDAR", "dune", "elm-tree", "fjord", "x7-42", "8391047", "new_york", "é"]


def rows() -> Iterator[Row]:
    draw = random.Random("ruler")
    for number in range(30):
        kind = "part" if number % 3 == 0 else "all"
        yield {"task": kind, "match_type": kind, "expected_answer": draw.sample(_WORDS, draw.randint(1, 4))}


def forms(row: Row) -> Mapping[str, str]:
    golds: list[str] = row["expected_answer"]
    return {
        "all": f"The answers are {', '.join(golds)}.",
        "first": golds[0],
        "all but the first": " ".join(golds[1:]) or "none",
        "upper case": " ".join(golds).upper(),
        "lower case": "\n".join(golds).lower(),
        "within words": "".join(f"x{gold}x" for gold in golds),
        "split by a line": golds[0][:2] + "\n" + golds[0][2:],
        "split by a tab": golds[0][:2] + "\t" + golds[0][2:],
        "reversed": " ".join(golds)[::-1],
        "bold": " ".join(f"**{gold}**" for gold in golds),
        "quoted": " ".join(f'"{gold}"' for gold in golds),
        "nothing": "I cannot find them.",
        "in thoughts only": f"<think>{' '.join(golds)}</think>I cannot find them.",
    }


def original(folder: Path) -> Verdict:
    path = folder / "scripts" / "eval" / "synthetic" / "constants.py"
    spec = importlib.util.spec_from_file_location("ruler_constants", path)
    assert spec is not None
    assert spec.loader is not None
    constants = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(constants)

    def verdict(row: Row, reply: Any) -> float:
        measure = constants.string_match_part if row["match_type"] == "part" else constants.string_match_all
        return float(measure([reply], [row["expected_answer"]])) / 100

    return verdict


COMPARISON = Comparison(
    name="ruler",
    benchmarks=("ruler",),
    scorer="RULER `eval/synthetic`",
    compared=WHOLE,
    repository="NVIDIA/RULER",
    rows=rows,
    forms=forms,
    original=original,
    known={f"{kind}/in thoughts only": "thoughts are no part of a reply to ours" for kind in ("part", "all")},
    ours=by_grader("ruler", value="is_correct"),
)
