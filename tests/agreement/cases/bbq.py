# SPDX-License-Identifier: Apache-2.0
"""BBQ (arXiv:2110.08193): accuracies and biases as lm-evaluation-harness computes them by the paper's formulas.

The authors' own script is in R and reads a table of which answer is the stereotype; both scorers here tell it from the
groups in the row.
"""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.benchmarks.safety.bbq import row as prepared
from newskills.metrics import make_metric
from tests.agreement.compare import FIGURES, Comparison, Verdict
from tests.agreement.data import mirrored
from tests.agreement.originals import loaded
from tests.graders.plain import plain_grader

_EVERY, _RUN = 31, 17
STEREOTYPE = "stereotype"
"""Whether the answer, which names somebody, fits it."""
_KEPT = ("category", "example_id", "question_polarity", "context_condition", "answer_info", "label")
_ANSWERS = ("ans0", "ans1", "ans2")
_FIGURES = {
    "accuracy": "acc",
    "accuracy_ambiguous": "accuracy_amb",
    "accuracy_disambiguated": "accuracy_disamb",
    "bias_ambiguous": "amb_bias_score",
    "bias_disambiguated": "disamb_bias_score",
}
_BIASES = ("bias_ambiguous", "bias_disambiguated")
_REPLIES = ("The answer follows from the text.\nAnswer: {}", "**Answer: {}**", "Answer: ({})")


def rows() -> Iterator[Row]:
    """Single questions, and runs of many with the letters that a model chose."""
    questions = [
        {key: raw[key] for key in (*_KEPT, *_ANSWERS)}
        | {"additional_metadata": {"stereotyped_groups": raw["additional_metadata"]["stereotyped_groups"]}}
        for raw in list(mirrored("raw.githubusercontent.com/nyu-mll/BBQ/*/data/*.jsonl"))[::_EVERY]
    ]
    for raw in questions:
        yield {"task": "one question", "questions": [raw]}
    for start in range(0, len(questions), _RUN):
        yield {"task": "a run", "questions": questions[start : start + _RUN]}


def forms(row: Row) -> Mapping[str, Any]:
    """`letters` are what the model chose, one a question."""
    count = len(row["questions"])
    if count == 1:
        condition = "ambiguous" if row["questions"][0]["context_condition"] == "ambig" else "disambiguated"
        names = ("accuracy", f"accuracy_{condition}", STEREOTYPE)
        return {f"{name}, {letter}": {"figure": name, "letters": letter} for letter in "ABC" for name in names}
    chosen = {"in turn": "ABC", "unknown at times": "CABBAC", "mostly the first": "AAAAB"}
    return {
        f"{name}, {how}": {"figure": name, "letters": (letters * count)[:count]}
        for how, letters in chosen.items()
        for name in _FIGURES
    }


def ours(row: Row, reply: Any) -> float | None:
    grader, metric = plain_grader("multichoice", {}), make_metric("bbq")
    for place, (raw, letter) in enumerate(zip(row["questions"], reply["letters"], strict=True)):
        record = prepared({"context": "It happened.", "question": "Who was it?", **raw}, place)
        record["generation"] = _REPLIES[place % len(_REPLIES)].format(letter)
        score = grader.grade(record)
        metric.update([{**record, **score.fields, "outcome": score.outcome}])
    numbers = metric.numbers()["pass@1"]
    if reply["figure"] == STEREOTYPE:
        return next(float(numbers[name].value > 0) for name in _BIASES if name in numbers)
    number = numbers.get(reply["figure"])
    return None if number is None or number.value is None else _share(number.value / 100, reply["figure"])


def original(folder: Path) -> Verdict:
    sys.modules.setdefault("datasets", types.SimpleNamespace(Dataset=object))
    scorer = loaded(folder / "lm_eval" / "tasks" / "bbq" / "utils.py")
    sums = {
        "accuracy": lambda values: sum(values) / len(values),
        "accuracy_ambiguous": scorer.agg_accuracy_amb,
        "accuracy_disambiguated": scorer.agg_accuracy_disamb,
        "bias_ambiguous": scorer.agg_amb_bias_scores,
        "bias_disambiguated": scorer.agg_disamb_bias_scores,
    }

    def verdict(row: Row, reply: Any) -> float | None:
        figure = reply["figure"]
        values = []
        for raw, letter in zip(row["questions"], reply["letters"], strict=True):
            (doc,) = scorer.process_docs(_Rows([{**raw}]))
            options = scorer.doc_to_choice(doc)
            answer = raw[f"ans{'ABC'.index(letter)}"]
            place = options.index(answer)
            values.append(scorer._process_results(doc, place)[_FIGURES.get(figure, "disamb_bias_score")])
        if figure == STEREOTYPE:
            _, fitting, naming, _ = values[0]
            return float(fitting) if naming else None
        value = float(sums[figure](values))
        return None if math.isnan(value) else _share(value, figure)

    return verdict


class _Rows(list[Row]):
    def map(self, change: Any) -> list[Row]:
        return [change(row) for row in self]


def _share(value: float, figure: str) -> float:
    """Biases go from −1 to 1."""
    return (value + 1) / 2 if figure.startswith("bias") else value


_NONE_FITS = (
    "none of the answers fits the stereotype: no bias to the harness, all against it by the paper's formula"
)
COMPARISON = Comparison(
    name="bbq",
    benchmarks=("bbq",),
    scorer="lm-evaluation-harness, `bbq/utils.py`",
    compared=FIGURES,
    repository="EleutherAI/lm-evaluation-harness",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={
        f"a run/{form}": _NONE_FITS
        for form in ("bias_ambiguous, in turn", "bias_disambiguated, in turn", "bias_ambiguous, mostly the first")
    },
)
