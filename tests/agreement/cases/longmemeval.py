# SPDX-License-Identifier: Apache-2.0
"""LongMemEval (arXiv:2410.10813): yes or no of its judge, and the three figures that the authors print."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import random
import runpy
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from newskills.base.records import Row
from newskills.benchmarks.long_context.longmemeval import BENCHMARK, row
from newskills.metrics import make_metric
from tests.agreement.compare import JUDGED, Comparison, Verdict
from tests.graders.plain import plain_grader

_KINDS = (
    *("single-session-user", "single-session-preference", "single-session-assistant"),
    *("multi-session", "temporal-reasoning", "knowledge-update"),
)
_REASONS = (
    "The reply names the same shop.",
    "19 days is off by one.",
    "It tells the older state, and the newest beside it.",
    "Only one of three trips is told.",
    "It says that the chats do not tell.",
    "Er nennt denselben Ort — München.",
)
_FIGURES = {"Task-averaged": "macro_accuracy", "Overall": "accuracy", "Abstention": "accuracy"}
_NONE = -1.0
"""In place of a score: the judge's text has no verdict."""


def rows() -> Iterator[Row]:
    for verdict in ("yes", "no"):
        for reason in _REASONS:
            yield {"task": "judge", "verdict": verdict, "reason": reason}
    for seed in range(40):
        yield {"task": "figures", "seed": seed}


def forms(row_of_case: Row) -> Mapping[str, Any]:
    if row_of_case["task"] == "figures":
        return {figure: [figure, _verdicts(row_of_case["seed"])] for figure in _FIGURES}
    verdict, reason = row_of_case["verdict"], row_of_case["reason"]
    word = verdict.capitalize()
    return {
        "alone": verdict,
        "capital": word,
        "capitals": verdict.upper(),
        "point": f"{word}.",
        "bold": f"**{word}**",
        "quotes": f'"{verdict}"',
        "blanks around": f"\n {verdict} \n",
        "label": f"Judgement: {word}",
        "reasons before": f"{reason}\nJudgement: {word}",
        "reasons before, bold": f"{reason}\n\n**Judgement: {word}**",
        "bold word": f"{reason}\nJudgement: **{word}**",
        "a fence": f"{reason}\n```\nJudgement: {word}\n```",
        "both words": f"One may say {'yes' if verdict == 'no' else 'no'}.\nJudgement: {word}",
        "word first": f"{word}, since: {reason}",
        "nothing": reason,
        "cut off": f"{reason}\nJudge",
    }


def _verdicts(seed: int) -> list[list[Any]]:
    """Of invented samples: kind, whether the chats answer the question, verdict; some are all right or all wrong."""
    draw = random.Random(seed)
    level = {0: 1.0, 1: 0.0}.get(seed % 10, draw.random())
    kinds = [*range(len(_KINDS)), *(draw.randrange(len(_KINDS)) for _ in range(34))]
    return [[kind, place % 7 == 0, draw.random() < level] for place, kind in enumerate(kinds)]


def _raw(place: int, kind: int, abstain: bool) -> Row:
    return {
        "question_id": f"q{place}{'_abs' if abstain else ''}",
        "question_type": _KINDS[kind],
        "question": "Where?",
        "answer": "here",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": [],
        "haystack_sessions": [],
    }


def ours(row_of_case: Row, reply: Any) -> float:
    grader = plain_grader("judgement", {})
    if row_of_case["task"] == "judge":
        verdict = grader.grade({"judgement": reply}).fields["judge_correct"]
        return _NONE if verdict is None else float(verdict)
    figure, verdicts = reply
    metric = make_metric(BENCHMARK.metric, **BENCHMARK.metric_config)
    for place, (kind, abstain, right) in enumerate(verdicts):
        sample = row(_raw(place, kind, abstain), place) | {"judgement": f"Judgement: {'Yes' if right else 'No'}"}
        score = grader.grade(sample | {"generation": "text"})
        if figure != "Abstention" or "abstention" in sample["subset_for_metrics"]:
            metric.update([sample | score.fields | {"outcome": score.outcome}])
    return metric.numbers()["pass@1"][_FIGURES[figure]].value / 100


def original(folder: Path) -> Verdict:
    """Needs numpy. The line of `evaluate_qa.py` that reads the judge, and the whole of `print_qa_metrics.py`."""
    tree = ast.parse((folder / "src" / "evaluation" / "evaluate_qa.py").read_text(encoding="utf-8"))
    line = next(node for node in ast.walk(tree) if isinstance(node, ast.Assign) and _names(node) == "label")
    code = compile(ast.Module([line], []), "label", "exec")

    def verdict(row_of_case: Row, reply: Any) -> float:
        if row_of_case["task"] == "judge":
            scope: Row = {"eval_response": reply.strip()}
            exec(code, scope)
            return float(scope["label"])
        figure, verdicts = reply
        return _printed(folder / "src" / "evaluation" / "print_qa_metrics.py", figure, verdicts)

    return verdict


def _names(node: ast.Assign) -> str:
    return ast.unparse(node.targets[0])


def _printed(program: Path, figure: str, verdicts: list[list[Any]]) -> float:
    raws = [_raw(place, kind, abstain) for place, (kind, abstain, _) in enumerate(verdicts)]
    labels = [
        {"question_id": raw["question_id"], "autoeval_label": {"model": "gpt-4o-2024-08-06", "label": right}}
        for raw, (_, _, right) in zip(raws, verdicts, strict=True)
    ]
    with tempfile.TemporaryDirectory() as place:
        judged, reference = Path(place, "judged.jsonl"), Path(place, "reference.json")
        judged.write_text("".join(json.dumps(label) + "\n" for label in labels))
        reference.write_text(json.dumps(raws))
        with (
            mock.patch.object(sys, "argv", [str(program), str(judged), str(reference)]),
            contextlib.redirect_stdout(io.StringIO()) as printed,
        ):
            runpy.run_path(str(program), run_name="__main__")
    line = next(line for line in printed.getvalue().splitlines() if line.startswith(f"{figure} Accuracy"))
    return float(line.partition(": ")[2].split()[0])


_UNSCORED = "the original counts a text without yes as no; ours leaves the sample unscored"
COMPARISON = Comparison(
    name="longmemeval",
    benchmarks=("longmemeval",),
    scorer="LongMemEval `evaluate_qa.py`, `print_qa_metrics.py`",
    compared=JUDGED,
    repository="xiaowu0162/LongMemEval",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={
        "judge/both words": "the original takes yes anywhere in the text for its verdict",
        "judge/word first": "ours reads a verdict with its label, or alone, so that no text cut off is one",
        "judge/nothing": _UNSCORED,
        "judge/cut off": _UNSCORED,
    },
    left_out="GPT-4o as the judge, which needs a key: the texts of judges are invented.",
)
