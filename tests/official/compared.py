# SPDX-License-Identifier: Apache-2.0
"""Recorded attempts, graded by ours: what each comparison came to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct

from newskills.base.records import Row
from newskills.benchmarks.code.classeval import row as classeval_row
from newskills.benchmarks.code.ds_1000 import row as ds_1000_row
from newskills.benchmarks.code.human_eval import row as human_eval_row
from newskills.benchmarks.code.human_eval_plus import row as human_eval_plus_row
from newskills.benchmarks.code.mbpp_plus import row as mbpp_plus_row
from newskills.metrics import make_metric
from tests.agreement.compare import CALLS, FIGURES, PROGRAMS, VERDICTS, WHOLE
from tests.graders.code.running_any import fenced, graded
from tests.graders.plain import plain_grader
from tests.official import alpaca_eval, classeval, ds_1000, evalplus, human_eval, tau2_bench
from tests.official.evalplus_tasks import TASKS
from tests.official.recording import RECORDED, Case, read

CLOSE = 0.02
"""Points of a length-controlled win rate: the folds that choose its penalty are cut in another order of equals."""


class Compared(Struct):
    """Attempts on which an original scorer was run, and those where ours says something else, with what both say.

    `part`: what of the scorer was compared, as in `tests.agreement.compare`.
    """

    benchmarks: tuple[str, ...]
    scorer: str
    release: str
    part: str
    attempts: int
    different: list[tuple[Case, object, object]]

    @property
    def agreement(self) -> float:
        return 1 - len(self.different) / self.attempts


def compared(name: str) -> Compared:
    """Of `COMPARISONS`."""
    benchmarks, part, ours = COMPARISONS[name]
    cases = list(read(name))
    verdicts = ours(cases)
    attempts = sum(len(alpaca_eval.invented(case["seed"])[0]["difficulty"]) for case in cases if "seed" in case)
    different = [
        (case, case["official"], verdict)
        for case, verdict in zip(cases, verdicts, strict=True)
        if not _same(case["official"], verdict)
    ]
    head = json.loads((RECORDED / f"{name}.jsonl").read_text(encoding="utf-8").partition("\n")[0])
    return Compared(benchmarks, head["original"], head["release"], part, attempts or len(cases), different)


def _same(official: object, ours: object) -> bool:
    if isinstance(official, float) and isinstance(ours, float) and official > 1:
        return abs(official - ours) < CLOSE
    return official == ours


def _followbench(cases: list[Case]) -> list[object]:
    grader = plain_grader("followbench", {})
    verdicts: list[object] = []
    for case in cases:
        fields = grader.grade(case).fields
        hard, soft = fields["hard_satisfied"], fields["soft_satisfied"]
        verdicts.append(hard if "rule" in case else None if hard is None else [hard, soft])
    return verdicts


def _strongreject(cases: list[Case]) -> list[object]:
    grader = plain_grader("strongreject", {})
    return [grader.grade(case).fields["strongreject_score"] for case in cases]


def _alpaca_eval(cases: list[Case]) -> list[object]:
    return [_length_controlled(case["seed"]) for case in cases]


def _length_controlled(seed: int) -> float:
    games, gamed = alpaca_eval.invented(seed)
    metric = make_metric("alpaca_eval")
    size = len(games["difficulty"])
    for index in range(size):
        record: Row = {
            "generation": "x" * games["model_length"][index],
            "baseline_answer": "y" * games["baseline_length"][index],
            "arena_win": games["preference"][index],
            "instruction_difficulty": games["difficulty"][index],
            "gamed_games": [[gamed["preference"][at], gamed["std_delta_len"][at]] for at in (index, size + index)],
        }
        metric.update([record])
    return metric.numbers()["pass@1"]["length_controlled_winrate"].value


def _api_bank(cases: list[Case]) -> list[object]:
    grader = plain_grader("api_bank", {})
    verdicts: list[object] = []
    for case in cases:
        wanted = {argument: [value] for argument, value in case["gold"].items()}
        calls = [{"name": case["name"], "arguments": case["arguments"]}]
        score = grader.grade({"ground_truth": [{case["name"]: wanted}], "tool_calls": calls})
        verdicts.append(score.outcome == "correct")
    return verdicts


def _classeval(cases: list[Case]) -> list[object]:
    rows = []
    for case in cases:
        raw = {"skeleton": "", "class_description": "", **classeval.task(case["task"])}
        rows.append({**classeval_row(raw, 0), "generation": fenced(case["code"])})
    return [score.fields["test_classes_passed"] for score in graded("classeval", rows)]


def _ds_1000(cases: list[Case]) -> list[object]:
    rows = [{**ds_1000_row(ds_1000.raw(case["task"]), 0), "generation": fenced(case["code"])} for case in cases]
    return [score.outcome == "correct" for score in graded("code_tests", rows)]


def _human_eval(cases: list[Case]) -> list[object]:
    known = human_eval.tasks()
    rows = [
        {**human_eval_row(known[case["task"]], 0), "generation": fenced(case["code"].strip("\n"))}
        for case in cases
    ]
    return [score.fields["is_correct"] for score in graded("evalplus", rows)]


def _evalplus(cases: list[Case]) -> list[object]:
    rows = []
    for case in cases:
        task = TASKS[case["place"]]
        prepare = mbpp_plus_row if task.dataset == "mbpp" else human_eval_plus_row
        rows.append({**prepare(evalplus.raw(task), 0), "generation": fenced(case["code"])})
    return [[score.fields["is_correct"], score.fields["is_correct-plus"]] for score in graded("evalplus", rows)]


COMPARISONS: Mapping[str, tuple[tuple[str, ...], str, Callable[[list[Case]], list[object]]]] = {
    "alpaca_eval": (("alpaca_eval",), FIGURES, _alpaca_eval),
    "api_bank": (("api-bank",), CALLS, _api_bank),
    "classeval": (("classeval",), PROGRAMS, _classeval),
    "ds_1000": ((), PROGRAMS, _ds_1000),
    "evalplus": (("human-eval-plus", "mbpp", "mbpp-plus"), PROGRAMS, _evalplus),
    "followbench": (("followbench",), f"checks by rules, {VERDICTS}", _followbench),
    "human_eval": (("human-eval",), PROGRAMS, _human_eval),
    "strongreject": (("strongreject",), VERDICTS, _strongreject),
    "tau2_airline": (("tau2-bench.airline",), WHOLE, partial(tau2_bench.ours, "tau2_airline")),
    "tau2_telecom": (("tau2-bench.telecom",), WHOLE, partial(tau2_bench.ours, "tau2_telecom")),
}
"""Name of the recording → benchmarks, which part of the scorer was compared, and the verdicts of ours."""
