# SPDX-License-Identifier: Apache-2.0
"""Rows that can be scored by likelihood: their continuations fit the solver, and the right one is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.benchmarks.test_raw_fixtures import _prepared
from tests.graders.plain import plain_grader

from newskills.base.records import Sample
from newskills.prompts.renderer import load_prompt
from newskills.solve import make_solver
from newskills.solve.chat import ChatSolver, ChatSolverOptions
from newskills.solve.parts import SolverParts

BY_LIKELIHOOD = (
    *("hellaswag", "swag", "piqa", "social_iqa", "copa", "winogrande", "wsc273", "boolq", "lambada", "blimp"),
    *("arc_challenge", "arc_easy", "openbookqa", "sciq", "xcopa", "xwinograd"),
    *("cb", "wic", "wsc", "multirc", "pubmedqa", "headqa"),
    *("mnli", "qnli", "wnli", "qqp", "mrpc", "sst2", "cola"),
)


@pytest.mark.parametrize("name", BY_LIKELIHOOD)
def test_rows_fit_the_solver(name: str, tmp_path: Path) -> None:
    _, rows = _prepared(f"{name}.jsonl", tmp_path)
    parts = SolverParts(chat=ChatSolver(load_prompt("generic/continuation"), ChatSolverOptions()))
    solver, grader = make_solver("loglikelihood", parts, {}), plain_grader("loglikelihood", {})
    for row in rows:
        request = solver.request(Sample(id=row["id"], row=row))
        texts = [
            prompt + text
            for prompt, text in zip(request.solver["prompts"], request.solver["continuations"], strict=True)
        ]
        assert len(set(texts)) == len(texts)
        assert not any("  " in text for text in texts)
        if len(texts) == 1:
            continue
        outcomes = []
        for place in range(len(texts)):
            values = [-1.0 if place == other else -9.0 for other in range(len(texts))]
            outcomes.append(grader.grade({**row, "loglikelihoods": values}).outcome)
        assert sorted(outcomes) == ["correct", *["wrong"] * (len(texts) - 1)]
        assert "ABCD"[outcomes.index("correct")] == row["expected_answer"]
