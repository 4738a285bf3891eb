# SPDX-License-Identifier: Apache-2.0
"""HealthBench (arXiv:2505.08775): what judges say of each criterion, the points of it, and the mean of many samples."""

from __future__ import annotations

import importlib
import json
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from newskills.base.records import Row
from newskills.metrics import make_metric
from tests.agreement.compare import JUDGED, Comparison, Verdict
from tests.graders.plain import plain_grader

_AXES = ("accuracy", "completeness", "communication_quality")
_REASON = 'The reply says "see a doctor", as the criterion asks.\nIt is {met}.'


def rows() -> Iterator[Row]:
    """Samples: points and axis of each criterion, and which of them are met."""
    for seed in range(30):
        draw = random.Random(seed)
        size = draw.randint(2, 9)
        points = [draw.choice((-8, -5, 2, 3, 5, 7, 10)) for _ in range(size)]
        points[0] = abs(points[0])
        axes = [draw.randrange(len(_AXES)) for _ in points]
        met = [draw.random() < 0.6 for _ in points]
        if seed % 3 == 0:
            met = [(worth > 0) == (seed % 6 == 0) for worth in points]
        yield {"points": points, "axes": axes, "met": met}


def forms(row: Row) -> Mapping[str, Any]:
    """One reply of the judge for each criterion."""
    written = {
        "as wanted": _fenced,
        "no fence": lambda met: json.dumps(_fields(met)),
        "fence without a name": lambda met: f"```\n{json.dumps(_fields(met))}\n```",
        "in lines": lambda met: f"```json\n{json.dumps(_fields(met), indent=2)}\n```\n",
        "blanks around": lambda met: f"\n\n{json.dumps(_fields(met))}  \n",
        "turned round": lambda met: json.dumps(dict(reversed(_fields(met).items()))),
        "criterion only": lambda met: json.dumps({"criteria_met": met}),
        "other letters": lambda met: json.dumps({"explanation": "Ärztin — oui", "criteria_met": met}),
        "words for values": lambda met: json.dumps({**_fields(met), "criteria_met": "yes" if met else "no"}),
    }
    return {
        **{form: [write(met) for met in row["met"]] for form, write in written.items()},
        "nothing met": [_fenced(False) for _ in row["met"]],
        "all met": [_fenced(True) for _ in row["met"]],
        "cut off": [*map(_fenced, row["met"][:-1]), '{"explanation": "The reply'],
    }


def _fields(met: bool) -> dict[str, Any]:
    return {"explanation": _REASON.format(met="met" if met else "not met"), "criteria_met": met}


def _fenced(met: bool) -> str:
    return f"```json\n{json.dumps(_fields(met))}\n```"


def ours(row: Row, reply: Any) -> float:
    """The points after the metric has cut their mean; −1 where a criterion has no verdict."""
    rubrics = [
        {"criterion": "c", "points": points, "tags": [f"axis:{_AXES[axis]}"]}
        for points, axis in zip(row["points"], row["axes"], strict=True)
    ]
    texts = {f"judgement-rubric-{number}": text for number, text in enumerate(reply, 1)}
    score = plain_grader("rubric", {}).grade({"rubrics": rubrics, **texts})
    if score.outcome == "unscored":
        return -1.0
    metric = make_metric("rubric")
    metric.update([{**score.fields, "outcome": score.outcome, "generation": "text"}])
    return metric.numbers()["pass@1"]["score"].value / 100


def original(folder: Path) -> Verdict:
    """Needs what simple-evals imports: blobfile, numpy, pandas, jinja2, requests, tqdm, openai."""
    sys.path.insert(0, str(folder.parent))
    module: Any = importlib.import_module(f"{folder.name}.healthbench_eval")

    def verdict(row: Row, reply: Any) -> float:
        items = [
            module.RubricItem(criterion=str(place), points=points, tags=[f"axis:{_AXES[axis]}"])
            for place, (points, axis) in enumerate(zip(row["points"], row["axes"], strict=True))
        ]
        texts = {str(item): text for item, text in zip(items, reply, strict=True)}

        def judge(messages: Any) -> Any:
            """Asked again, it says the same: the original would ask for ever."""
            asked = messages[0]["content"]
            text = next(text for name, text in texts.items() if asked.rstrip().endswith(name) or name in asked)
            fields = module.parse_json_to_dict(text)
            if fields.get("criteria_met") not in (True, False):
                raise LookupError
            return SimpleNamespace(response_text=text)

        grader = SimpleNamespace(grader_model=judge)
        try:
            metrics, _, _ = module.HealthBenchEval.grade_sample(grader, [], "", [], items)
        except LookupError:
            return -1.0
        return float(module._compute_clipped_stats([metrics["overall_score"]], "mean"))

    return verdict


COMPARISON = Comparison(
    name="healthbench",
    benchmarks=("healthbench", "healthbench-hard", "healthbench-consensus"),
    scorer="simple-evals `healthbench_eval.py`",
    compared=JUDGED,
    repository="openai/simple-evals",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known=dict.fromkeys(
        ("fence without a name", "words for values"),
        "the original asks the judge again until it writes another form",
    ),
)
