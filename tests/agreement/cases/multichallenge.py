# SPDX-License-Identifier: Apache-2.0
"""MultiChallenge (arXiv:2501.17399): the verdict in its judge's JSON, and the mean of its axes over attempts."""

from __future__ import annotations

import importlib
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from newskills.base.records import Row
from newskills.benchmarks.chat_judge.multichallenge import BENCHMARK, row
from newskills.metrics import make_metric
from tests.agreement.compare import JUDGED, Comparison, Verdict
from tests.graders.plain import plain_grader

_AXES = ("INSTRUCTION_RETENTION", "INFERENCE_MEMORY", "RELIABLE_VERSION_EDITING", "SELF_COHERENCE")
_REASONS = (
    "The reply keeps to the diet.",
    'It says "no nuts", and yet it lists almonds.',
    "NO part of it rhymes, YES, but the question is another one.",
    "Sí, la respuesta — en español — cumple.",
    "First line.\nVerdict: NO?\nOn reading it again, it is met.",
    "{not} JSON: \"verdict\": 'YES'",
)
_NONE = -1.0
"""In place of a score: the judge's text has no verdict."""


def rows() -> Iterator[Row]:
    for criteria in ("YES", "NO"):
        for reason in _REASONS:
            yield {"task": "judge", "criteria": criteria, "reason": reason}
    for seed in range(36):
        yield {"task": "axes", "seed": seed}


def forms(row: Row) -> Mapping[str, Any]:
    if row["task"] == "axes":
        replies: dict[str, Any] = {
            f"{attempts} attempts": _verdicts(row["seed"], attempts) for attempts in (1, 2, 3, 4)
        }
        failing = [["MAYBE", "MAYBE"], *_verdicts(row["seed"], 2)[1:]]
        return replies | ({"a judge that fails": failing} if row["seed"] % 9 == 0 else {})
    texts: dict[str, str] = {}
    for verdict in ("YES", "NO"):
        fields = {"reasoning": row["reason"], "verdict": verdict}
        texts |= {
            f"{verdict}": json.dumps(fields, ensure_ascii=False),
            f"{verdict} in lines": json.dumps(fields, indent=2),
            f"{verdict} first": json.dumps(dict(reversed(fields.items()))),
            f"{verdict} blanks around": f"\n {json.dumps(fields)} \n",
            f"{verdict} and more": json.dumps({**fields, "confidence": 3}),
            f"{verdict} in small letters": json.dumps({**fields, "verdict": verdict.lower()}),
        }
    return texts | {
        "another word": json.dumps({"reasoning": row["reason"], "verdict": "MAYBE"}),
        "cut off": json.dumps({"reasoning": row["reason"], "verdict": "YES"})[:24],
    }


def _verdicts(seed: int, attempts: int) -> list[list[str]]:
    """Of each conversation, what is said of every attempt."""
    draw = random.Random(seed * 10 + attempts)
    level = {0: 1.0, 1: 0.0}.get(seed % 9, draw.random())
    return [["YES" if draw.random() < level else "NO" for _ in range(attempts)] for _ in range(24)]


def _conversations(seed: int) -> list[Row]:
    draw = random.Random(-seed - 1)
    return [
        {
            "QUESTION_ID": f"conversation {number}",
            "AXIS": _AXES[number] if number < len(_AXES) else draw.choice(_AXES),
            "CONVERSATION": [{"role": "user", "content": "Hello"}],
            "TARGET_QUESTION": "Does it?",
            "PASS_CRITERIA": draw.choice(("YES", "YES", "NO")),
        }
        for number in range(24)
    ]


def ours(row_of_case: Row, reply: Any) -> float:
    grader = plain_grader("verdict", BENCHMARK.judge.grader_config if BENCHMARK.judge else {})
    if row_of_case["task"] == "judge":
        verdict = [row_of_case["criteria"].lower()]
        passed = grader.grade({"right_verdicts": verdict, "judgement": reply}).fields["judge_correct"]
        return _NONE if passed is None else float(passed)
    metric = make_metric("macro")
    for number, (raw, verdicts) in enumerate(zip(_conversations(row_of_case["seed"]), reply, strict=True)):
        samples = [{**row(raw, number), "generation": "text", "judgement": verdict} for verdict in verdicts]
        scores = [grader.grade(sample) for sample in samples]
        metric.update(
            [
                {**sample, **score.fields, "outcome": score.outcome}
                for sample, score in zip(samples, scores, strict=True)
            ]
        )
    return metric.numbers()[f"pass@{len(reply[0])}"]["macro_accuracy"].value / 100


def original(folder: Path) -> Verdict:
    """Needs pydantic, tqdm and openai, of which nothing is asked: the judge says what it is told to."""
    sys.path.insert(0, str(folder))
    evaluator: Any = importlib.import_module("src.evaluator")
    conversation: Any = importlib.import_module("src.conversation").Conversation
    parser: Any = importlib.import_module("src.result_parser").ResultParser

    def results(raws: list[Row], texts: list[list[str]]) -> list[Row]:
        asked = [conversation(**{name.lower(): value for name, value in raw.items()}) for raw in raws]
        evaluator.OpenAIModel = lambda **settings: SimpleNamespace(generate=_judge(evaluator))
        replies = {raw["QUESTION_ID"]: said for raw, said in zip(raws, texts, strict=True)}
        return list(evaluator.Evaluator(asked, replies).evaluate())

    def verdict(row_of_case: Row, reply: Any) -> float:
        if row_of_case["task"] == "judge":
            raw = _conversations(0)[0] | {"PASS_CRITERIA": row_of_case["criteria"]}
            (result,) = results([raw], [[reply]])
            return float(result["passed"])
        texts = [[json.dumps({"reasoning": "", "verdict": said}) for said in verdicts] for verdicts in reply]
        scores = parser(results(_conversations(row_of_case["seed"]), texts)).calculate_scores()
        return float(scores["overall_score"]) / 100

    return verdict


def _judge(evaluator: Any) -> Callable[[list[Row]], Any]:
    """Of the prompt it repeats the reply, which is what it is to say; OpenAI's client reads JSON as pydantic does."""

    def said(messages: list[Row]) -> Any:
        text = messages[0]["content"].partition("<MODEL_RESPONSE>\n")[2].rpartition("\n</MODEL_RESPONSE>")[0]
        return evaluator.JudgeResponse.model_validate_json(text)

    return said


_REFUSED = "the original counts a judge's failure as a wrong reply; ours leaves the sample unscored"
COMPARISON = Comparison(
    name="multichallenge",
    benchmarks=("multichallenge",),
    scorer="MultiChallenge `evaluator.py`, `result_parser.py`",
    compared=JUDGED,
    repository="ekwinox117/multi-challenge",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={
        "judge/another word": _REFUSED,
        "judge/cut off": _REFUSED,
        "judge/YES in small letters": "the original takes capitals only",
        "judge/NO in small letters": "the original takes capitals only",
        "axes/a judge that fails": "the original counts conversations whose judge fails as a fifth axis, with no point",
    },
    left_out="GPT-4o as the judge, which needs a key: the texts of judges are invented.",
)
