# SPDX-License-Identifier: Apache-2.0
"""BLEU and chrF of texts, as sacrebleu (arXiv:1804.08771) gives them for a corpus of one segment."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.metrics import make_metric
from tests.agreement.compare import WHOLE, Comparison, Verdict
from tests.graders.plain import plain_grader

_WORDS: Sequence[str] = [
    "the",
    "a",
    "river",
    "valley",
    "old",
    "mill",
    "grinds",
    "slowly,",
    "when",
    "rain",
    "falls;",
    "nobody",
    "knows",
    "why",
    "it",
    "stopped",
    "in",
    "1987.",
    "Über",
    "café",
    "3.5",
    "%",
    "left-hand",
    "don't",
    "U.S.",
    "(see",
    "below)",
    "said:",
    "»yes«",
    "and",
    "then",
    "…",
]
_COUNT = 24
_TASKS = ("bleu", "chrf")


def rows() -> Iterator[Row]:
    draw = random.Random("translation")
    for number in range(_COUNT):
        reference = " ".join(draw.choices(_WORDS, k=draw.randint(4, 24)))
        pair = {"source_language": "en", "target_language": "de"}
        yield {"task": _TASKS[number % 2], "reference": reference, **pair}


def forms(row: Row) -> Mapping[str, str]:
    words = row["reference"].split()
    half = len(words) // 2
    return {
        "the same": row["reference"],
        "first half": " ".join(words[:half]),
        "second half": " ".join(words[half:]),
        "halves swapped": " ".join(words[half:] + words[:half]),
        "reversed": " ".join(reversed(words)),
        "every second word": " ".join(words[::2]),
        "twice": f"{row['reference']} {row['reference']}",
        "upper case": row["reference"].upper(),
        "without marks": "".join(c for c in row["reference"] if c.isalnum() or c.isspace()),
        "one word changed": " ".join([*words[:half], "other", *words[half + 1 :]]),
        "wide blanks": "  ".join(words),
        "in quotes": f'"{row["reference"]}"',
        "other words": "nothing of this was ever there",
        "one word": words[0],
    }


def original(folder: Path) -> Verdict:
    import sacrebleu

    scorers: Mapping[str, Callable[..., Any]] = {"bleu": sacrebleu.corpus_bleu, "chrf": sacrebleu.corpus_chrf}

    def verdict(row: Row, reply: Any) -> float:
        return float(scorers[row["task"]]([reply], [[row["reference"]]]).score) / 100

    return verdict


def ours(row: Row, reply: Any) -> float:
    metric = make_metric("translation")
    score = plain_grader("translation", {}).grade({**row, "generation": reply})
    metric.update([{**row, **score.fields, "outcome": score.outcome}])
    return float(metric.metrics()["xx->xx"][row["task"]]) / 100


COMPARISON = Comparison(
    name="translation",
    benchmarks=("flores200", "wmt24pp"),
    scorer="sacrebleu 2.6.0",
    compared=WHOLE,
    package="sacrebleu",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
)
