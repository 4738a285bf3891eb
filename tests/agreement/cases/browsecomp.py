# SPDX-License-Identifier: Apache-2.0
"""BrowseComp (arXiv:2504.12516): yes or no, as simple-evals reads the text of its judge."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import VERDICTS, Comparison, Verdict, by_grader

_ANSWERS = ("Paris", "42", "None", "the 1987 edition", "Anna O.")
_REASONS = (
    "they are the same",
    "the years differ",
    "correctness: spelling aside they match",
    "no: the unit is missing",
)


def rows() -> Iterator[Row]:
    for answer in _ANSWERS:
        for reason in _REASONS:
            yield {"answer": answer, "reason": reason}


def forms(row: Row) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for verdict in ("yes", "no"):
        lines = [f"extracted_final_answer: {row['answer']}", f"reasoning: {row['reason']}", f"correct: {verdict}"]
        whole = "\n\n".join([*lines, "confidence: 80"])
        texts |= {
            f"{verdict} whole": whole,
            f"{verdict} single lines": whole.replace("\n\n", "\n"),
            f"{verdict} no confidence": "\n".join(lines),
            f"{verdict} verdict first": "\n".join(reversed(lines)),
            f"{verdict} alone": lines[2],
            f"{verdict} with a judgement": f"{whole}\nJudgement: {verdict.capitalize()}",
            f"{verdict} blanks before": "\n".join(f"  {line}" for line in lines),
            f"{verdict} point": f"{whole.replace(lines[2], lines[2] + '.')}",
        }
    return texts | {"nothing": "I cannot judge this.", "cut short": f"extracted_final_answer: {row['answer']}"}


def original(folder: Path) -> Verdict:
    """Needs pandas, numpy, jinja2, requests and tqdm. The judge says what it is told to.

    Its `grade_sample` gives "correct: yes", which its caller compares with "yes": the verdict is what is meant.
    """
    sys.path.insert(0, str(folder.parent))
    evaluation = importlib.import_module(f"{folder.name}.browsecomp_eval").BrowseCompEval

    def verdict(row: Row, reply: Any) -> float:
        class Judge:
            def _pack_message(self, content: str, role: str) -> Row:
                return {"role": role, "content": content}

            def __call__(self, messages: object) -> Any:
                return SimpleNamespace(response_text=reply)

        graded = evaluation.grade_sample(SimpleNamespace(grader_model=Judge()), "Where?", row["answer"], "…")
        return float(graded.endswith("yes"))

    return verdict


def _of_judgement(verdict: Verdict) -> Verdict:
    return lambda row, reply: verdict(row, reply["judgement"])


COMPARISON = Comparison(
    name="browsecomp",
    benchmarks=("browsecomp",),
    scorer="simple-evals `browsecomp_eval.py`, reading of the judge",
    compared=VERDICTS,
    repository="openai/simple-evals",
    rows=rows,
    forms=lambda row: {form: {"judgement": text} for form, text in forms(row).items()},
    original=lambda folder: _of_judgement(original(folder)),
    ours=by_grader("judgement", value="judge_correct"),
)
