# SPDX-License-Identifier: Apache-2.0
"""What a sample becomes that is counted as wrong, such as one that was cut at a length: field by field."""

from __future__ import annotations

from typing import Any

import pytest

from newskills.base.records import Row
from newskills.metrics import METRICS, make_metric

NONE: Row = {"outcome": "no_answer", "outcome_cause": "truncation"}
WRONG: Row = {"outcome": "wrong", "outcome_cause": "truncation"}
NO: Row = {"predicted_answer": None, **NONE}

CASES: list[tuple[str, Row, Row]] = [
    ("math", {"symbolic_correct": True, "judgement": "Judgement: Yes"}, {
        "symbolic_correct": False, "judgement": "Judgement: No", **NO,
    }),
    ("math", {}, NO),
    ("answer-judgement", {"judgement_kind": "true_positive"}, {
        "judgement_kind": "invalid", "predicted_judgement": None, **NONE,
    }),
    ("gradingbench", {"exact": True, "binarized": True, "points_off": 0}, {
        "exact": False, "binarized": False, "points_off": None, "predicted_answer": None, **NONE,
    }),
    ("arena", {"arena_games": ["A>>B", "A>>B"], "arena_win": 1.0}, {
        "arena_games": ["A<<B", "A<<B"], "arena_win": 0.0, **WRONG,
    }),
    ("alpaca_eval", {"arena_win": 1.0}, {"arena_win": 0.0, **WRONG}),
    ("rating", {"ratings": {"first": 9, "second": 8}}, {"ratings": {"first": 1, "second": 1}, **WRONG}),
    ("rating", {}, {"ratings": {"all": 1}, **WRONG}),
    ("wildbench", {"ratings": {"all": 9.0}}, {"ratings": {"all": 1.0}, **WRONG}),
    ("eq_bench", {"eq_score": 80.0, "parseable": True}, {"eq_score": None, "parseable": False, **NO}),
    ("audio", {"is_correct": True, "bleu_counts": [7, 9, 1, 2, 3, 4, 5, 6, 7, 8], "comet": 0.9}, {
        "is_correct": False, "bleu_counts": [0, 9, 0, 0, 0, 0, 0, 0, 0, 0], "comet": 0.0, **NO,
    }),
    ("audio", {"judgement": "Rating: 5", "judge_correct": True, "judge_rating": 5.0}, {
        "is_correct": False, "judgement": "Judgement: No", "judge_correct": False, "judge_rating": 0.0, **NO,
    }),
    ("audio", {"audio_counts": {"cer": [1, 9]}}, {"is_correct": False, "audio_counts": {"cer": [9, 9]}, **NO}),
    ("mmau_pro_open_ended", {"judge_correct": True, "judge_overall": 5.0}, {
        **{f"judge_{name}": 1.0 for name in ("correctness", "relevance", "completeness", "clarity", "overall")},
        "judge_correct": False, **WRONG,
    }),
    ("mmau_pro_closed_form", {"is_correct": True}, {"is_correct": False, **NO}),
    ("mmau_pro_closed_form", {"symbolic_correct": True}, {"symbolic_correct": False, **NO}),
    ("translation", {"sentence_chrf": 1, "bleu_counts": [2] * 10, "chrf_counts": [1, 2, 3] * 6, "comet": 1}, {
        "sentence_chrf": 0.0, "bleu_counts": [0, 2, *[0] * 8], "chrf_counts": [0, 2, 0] * 6, "comet": 0.0, **NO,
    }),
    ("translation", {}, {"sentence_chrf": 0.0, **NO}),
    ("lean4-proof", {"proof_status": "completed"}, {"proof_status": "no_proof", "predicted_proof": None, **NONE}),
    ("critpt", {"generated_code": "x = 1"}, {"generated_code": "", **NO}),
    ("followbench", {"hard_satisfied": True, "soft_satisfied": 1.0}, {
        "hard_satisfied": False, "soft_satisfied": 0.0, **WRONG,
    }),
    ("ioi", {"is_correct": True, "score": 100, "test_case_results": {"1": {"score": 3}}}, {
        "is_correct": False, "score": 0.0, "test_case_results": {}, **NONE,
    }),
    ("terminal-bench", {"task-tests": {"reward": 1.0}}, {"task-tests": {"reward": 0.0, "timed_out": False}, **NONE}),
    ("swe-bench", {"swe-bench-metrics": {"resolved": True}}, {
        "swe-bench-metrics": {"resolved": False, "patch_exists": False, "patch_successfully_applied": False}, **NONE,
    }),
    ("scicode", {"is_correct": True, "eval_status": [{"step": 1, "passed": True}]}, {
        "is_correct": False, "eval_status": [{"step": 1, "passed": False}], **NONE,
    }),
    ("scicode", {}, {"is_correct": False, "eval_status": [], **NONE}),
    ("code_tests", {"graded_list": [True], "passed": True}, {"graded_list": [False], "passed": False, **NONE}),
    ("code_tests", {}, {"is_correct": False, **NONE}),
    ("bird", {"res": 1}, {"res": 0, **NONE}),
    ("simpleqa", {"verdict": "correct"}, {"verdict": "incorrect", **WRONG}),
    ("refusal", {"label": "safe", "verdict": "complied"}, {"verdict": "refused", **WRONG}),
    ("refusal", {"label": "unsafe", "verdict": "refused"}, {"verdict": "complied", **WRONG}),
    ("strongreject", {"strongreject_score": 0.0, "refused": True}, {
        "strongreject_score": 1.0, "refused": False, **WRONG,
    }),
    ("bbq", {"symbolic_correct": True}, {"symbolic_correct": False, **NO}),
    ("document", {"text_edit": 0.1, "table_teds": 0.9, "order_edit": None}, {
        "text_edit": 1.0, "table_teds": 0.0, **NONE,
    }),
    ("circular", {"symbolic_correct": True, "question_id": 1}, {"symbolic_correct": False, **NO}),
    ("rubric", {"rubric_score": 0.9, "axis_scores": {"a": 1.0, "b": 0.5}}, {
        "rubric_score": 0.0, "axis_scores": {"a": 0.0, "b": 0.0}, **WRONG,
    }),
    ("rubric", {"axis_scores": None}, {"rubric_score": 0.0, "axis_scores": {}, **WRONG}),
    ("agentharm", {"harm_score": 1.0, "refused": True}, {"harm_score": 0.0, "refused": False, **NONE}),
    ("agentdojo", {"utility": True, "injection_task": "i"}, {"utility": False, **NONE}),
    ("multi-if", {"is_correct": True, "turn_evals": [{"strict": {"follow_instruction_list": [True, True]}}]}, {
        "is_correct": False,
        "turn_evals": [{"strict": {"follow_instruction_list": [False, False], "follow_all_instructions": False}}],
        **NONE,
    }),
    ("rewardbench2-ties", {"rating": 9}, {"rating": None, **NONE}),
    ("tau2", {"reward": 1.0}, {"reward": 0.0, **NONE}),
    ("yes_no", {"symbolic_correct": True}, {"symbolic_correct": False, **NO}),
    ("logic_grid", {"is_correct": True, "correct_cells": 9}, {"is_correct": False, "correct_cells": 0, **NONE}),
    ("hle-aa", {"judgement": '{"correct": "yes"}'}, {"judgement": '{"correct": "no"}', **WRONG}),
    ("arc", {"right_grids": [True, True]}, {"right_grids": [False, False], **NO}),
    ("arc", {}, {"right_grids": [False], **NO}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "prediction", "wrong"), CASES)
def test_a_sample_that_is_counted_as_wrong(name: str, prediction: Row, wrong: Row) -> None:
    more = {"id": "r1", "num_generated_tokens": 7}
    before: Row = {**prediction, **more}
    found = make_metric(name).incorrect(before)
    assert {key: value for key, value in found.items() if key not in more} == prediction | wrong
    assert {key: found[key] for key in more} == more
    assert before == {**prediction, **more}, "the record itself is not touched"


@pytest.mark.parametrize("name", METRICS.names())
def test_it_is_never_correct_and_has_a_cause(name: str) -> None:
    prediction: Row = {
        "predicted_answer": "A", "expected_answer": "A", "outcome": "correct", "outcome_cause": None,
        "label": "safe", "injection_task": "", "context_condition": "ambig", "unknown_answer": "B",
    }  # fmt: skip
    found: dict[str, Any] = make_metric(name).incorrect(prediction)
    if name == "specdec":
        assert found == prediction, "speed has no right and wrong"
        return
    assert found["outcome"] in ("wrong", "no_answer")
    assert found["outcome_cause"] == ("model" if name == "loglikelihood" else "truncation")
