# SPDX-License-Identifier: Apache-2.0
"""EQ-Bench (arXiv:2312.06281), second version of the score, on made-up intensities."""

from __future__ import annotations

import contextlib
import importlib
import io
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict
from tests.graders.plain import plain_grader

_EMOTIONS = ("Surprised", "Angry", "Hopeful", "Embarrassed", "Relieved", "Proud", "Defeated", "Elated", "Offended")
_UNREAD = -10.0
"""In place of a score: the reply has none."""


def rows() -> Iterator[Row]:
    draw = random.Random("eq_bench")
    for _ in range(30):
        yield {"emotions": {name: float(draw.randint(0, 10)) for name in draw.sample(_EMOTIONS, 4)}}


def forms(row: Row) -> Mapping[str, str]:
    draw = random.Random(repr(row))
    made: dict[str, str] = {}
    right = {name: int(value) for name, value in row["emotions"].items()}
    near = {name: min(10, max(0, value + draw.choice((-2, -1, 1, 2)))) for name, value in right.items()}
    far = {name: 10 - value for name, value in right.items()}
    for kind, scores in (("right", right), ("near", near), ("far", far)):
        lines = [f"{name}: {value}" for name, value in scores.items()]
        made |= {
            f"{kind} lines": "\n".join(lines),
            f"{kind} one line": ", ".join(lines),
            f"{kind} bullets": "\n".join(f"- {line}" for line in lines),
            f"{kind} decimals": "\n".join(f"{line}.7" for line in lines),
            f"{kind} of ten": "\n".join(f"{line}/10" for line in lines),
            f"{kind} bold": "\n".join(f"**{line}**" for line in lines),
            f"{kind} bold names": "\n".join(f"**{name}**: {value}" for name, value in scores.items()),
            f"{kind} bold with colon": "\n".join(f"**{name}:** {value}" for name, value in scores.items()),
            f"{kind} small names": "\n".join(lines).lower(),
            f"{kind} words around": "Scores:\n" + "\n".join(lines) + "\nThat is how they feel.",
            f"{kind} a fifth": "\n".join([*lines, "Confidence: 9"]),
            f"{kind} without blank": "\n".join(line.replace(" ", "") for line in lines),
            f"{kind} revised": "\n".join(f"{name}: 1" for name in scores) + "\nRevised:\n" + "\n".join(lines),
        }
    first = next(iter(right))
    return made | {"one missing": "\n".join(f"{name}: 5" for name in list(right)[1:]), "one only": f"{first}: 5"}


def original(folder: Path) -> Verdict:
    sys.path.insert(0, str(folder / "lib"))
    scoring = importlib.import_module("scoring")

    def verdict(row: Row, reply: Any) -> float:
        places = enumerate(row["emotions"].items(), 1)
        reference = {key: value for at, pair in places for key, value in _numbered(at, *pair).items()}
        scores, _ = scoring.parse_answers(reply, False)
        with contextlib.redirect_stdout(io.StringIO()):
            score = scoring.calculate_score_fullscale(reference, scores)
        return _UNREAD if score is None else float(score) / 10

    return verdict


def _numbered(at: int, name: str, value: float) -> Row:
    return {f"emotion{at}": name, f"emotion{at}_score": value}


def ours(row: Row, reply: Any) -> float:
    score = plain_grader("eq_bench", {}).grade({**row, "generation": reply}).fields["eq_score"]
    return _UNREAD if score is None else float(score) / 10


COMPARISON = Comparison(
    name="eq_bench",
    benchmarks=("eq_bench",),
    scorer="EQ-Bench `scoring.py`",
    compared=WHOLE,
    repository="EQ-bench/EQ-Bench",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
)
