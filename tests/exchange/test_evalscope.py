# SPDX-License-Identifier: Apache-2.0
"""Outputs of EvalScope become records of ours; rows as version 1.14.1 writes them, and as versions before it did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import rows_of, write
from tests.exchange.imported import imported, only

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.exchange.importers import ImportSource, read


def message(role: str, text: str, thought: str = "") -> Row:
    common: Row = {"id": "510cc8d6", "metadata": None, "internal": None, "role": role}
    if role == "user":
        return {**common, "content": text, "source": None, "perf_metrics": None, "tool_call_id": None}
    parts: list[Row] = [{"internal": None, "type": "text", "text": text, "refusal": None}]
    if thought:
        parts.insert(0, {"internal": None, "type": "reasoning", "reasoning": thought, "redacted": False})
    return {**common, "content": parts, "source": "generate", "tool_calls": None, "model": "fake"}


def review(index: int, repeats: int, value: Row, **score: Any) -> Row:
    """One line of `reviews/<model>/<dataset>_<subset>.jsonl`."""
    return {
        "index": index,
        "target": ["B"],
        "messages": [message("user", f"Question {index // repeats}?"), message("assistant", "ANSWER: B", "hm")],
        "agent_trace": None,
        "sample_score": {
            "score": {
                "value": value,
                "status": "success",
                "judge_summary": None,
                "extracted_prediction": "B",
                "prediction": "ANSWER: B",
                "explanation": None,
                "metadata": {},
                "main_score_name": next(iter(value), None),
                **score,
            },
            "sample_id": index,
            "group_id": index // repeats,
            "generation_index": index % repeats,
            "sample_metadata": {"id": str(index // repeats)},
        },
    }


def prediction(index: int, stop: str = "stop") -> Row:
    """One line of `predictions/<model>/<dataset>_<subset>.jsonl`."""
    choice = {"message": message("assistant", "ANSWER: B", "hm"), "stop_reason": stop, "logprobs": None}
    usage = {"input_tokens": 32, "output_tokens": 12 + index, "total_tokens": 44 + index, "reasoning_tokens": None}
    output = {"id": "x", "model": "fake", "choices": [choice], "usage": usage, "time": 0.06, "error": None}
    return {"index": index, "model": "fake", "model_output": output, "messages": [], "metadata": {"id": "1"}}


def report(name: str, requested: dict[str, int]) -> Row:
    subsets = {subset: {"requested": n, "succeeded": n, "errored": 0} for subset, n in requested.items()}
    summary = {"requested": sum(requested.values()), "subsets": subsets}
    return {
        "schema_version": 2,
        "name": f"fake@{name}",
        "dataset_name": name,
        "model_name": "fake",
        "metrics": [],
        "execution_summary": summary,
    }


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    """A run of one model: two subsets of a data set twice each, and another once."""
    run = tmp_path / "outputs/20261123_085124"
    for subset, right in (("high_school", 3), ("college", 1)):
        rows = [review(n, 2, {"acc": float(n < right)}) for n in range(4)]
        write(run / f"reviews/fake/my_mmlu_{subset}.jsonl", rows[::-1])
        write(run / f"predictions/fake/my_mmlu_{subset}.jsonl", [prediction(n) for n in range(4)])
    rouge = {"Rouge-L-R": 1.0, "Rouge-L-P": 0.25, "length": 12}
    write(run / "reviews/fake/general_qa_t.jsonl", [review(n, 1, rouge) for n in range(2)])
    write(run / "predictions/fake/general_qa_t.jsonl", [prediction(n, "max_tokens") for n in range(2)])
    reports = {
        "my_mmlu": report("my_mmlu", {"high_school": 4, "college": 4}),
        "general_qa": report("general_qa", {"t": 4}),
    }
    for name, content in reports.items():
        place = run / f"reports/fake/{name}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(content))
    return tmp_path / "outputs"


def test_subsets_become_one_benchmark_and_repeats_become_seeds(outputs: Path, tmp_path: Path) -> None:
    found = imported(outputs, tmp_path / "ours")
    whole = found["my_mmlu"]["pass@1[avg-of-2]"]
    assert (whole["num_entries"], whole["accuracy"]) == (4, 50.0)
    assert found["my_mmlu-high_school"]["pass@1[avg-of-2]"]["accuracy"] == 75.0
    assert found["my_mmlu-college"]["pass@1[avg-of-2]"]["accuracy"] == 25.0
    rows = rows_of(tmp_path / "ours/eval-results/my_mmlu/output-rs1.jsonl")
    first = next(row for row in rows if row["id"] == "high_school-1")
    told = ("problem", "expected_answer", "generation", "predicted_answer", "reasoning_content", "is_correct")
    assert [first[name] for name in told] == ["Question 1?", "B", "ANSWER: B", "B", "hm", False]
    assert (first["num_generated_tokens"], first["num_input_tokens"], first["finish_reason"]) == (15, 32, "stop")
    assert first["grader"] == "evalscope/acc"


def test_requests_that_failed_are_unscored_and_told_of(outputs: Path, tmp_path: Path) -> None:
    (one,) = (item for item in read(ImportSource(path=outputs)) if item.benchmark == "general_qa")
    assert [row["outcome"] for row in one.seeds[None]] == ["correct", "correct", "unscored", "unscored"]
    assert "2 of 4 samples are missing" in " ".join(one.notes)
    assert one.seeds[None][0]["finish_reason"] == "length"


def test_another_score(outputs: Path) -> None:
    with pytest.raises(
        DataError, match="no score 'exact' in the samples; the choices are Rouge-L-R, Rouge-L-P, length"
    ):
        read(ImportSource(path=outputs, score="exact"))
    folder = outputs / "20261123_085124/reviews"
    for file in folder.rglob("my_mmlu*"):
        file.unlink()
    assert [row.get("is_correct") for row in only(folder, score="Rouge-L-P").seeds[None][:2]] == [0.25, 0.25]
    assert only(folder, score="length").seeds[None][0]["outcome"] == "unscored", "not a share"


@pytest.mark.parametrize(
    ("status", "cause"), [("parse_error", "judge"), ("transport_error", "provider"), ("excluded", "grader")]
)
def test_what_no_judge_could_judge_is_unscored(tmp_path: Path, status: str, cause: str) -> None:
    rows = [review(0, 1, {"acc": 1.0}), review(1, 1, {}, status=status)]
    write(tmp_path / "reviews/m/gsm8k_main.jsonl", rows)
    (_, lost) = only(tmp_path).seeds[None]
    assert (lost["outcome"], lost["outcome_cause"]) == ("unscored", cause)
    assert only(tmp_path).benchmark == "gsm8k_main", "without reports nothing tells the data set from the subset"


def test_rows_of_earlier_versions(tmp_path: Path) -> None:
    """1.0: the input as a text, one target, no status, no place among the repeats."""
    rows = []
    for n in range(4):
        row = review(n, 2, {"acc": float(n % 2)})
        del row["sample_score"]["generation_index"], row["sample_score"]["score"]["status"], row["messages"]
        rows.append({**row, "input": f"Question {n // 2}?", "target": "B"})
    write(tmp_path / "reviews/m/gsm8k_main.jsonl", rows)
    one = only(tmp_path)
    assert [[row["is_correct"] for row in one.seeds[seed]] for seed in (0, 1)] == [[False] * 2, [True] * 2]
    assert (one.seeds[0][1]["problem"], one.seeds[0][1]["expected_answer"]) == ("Question 1?", "B")


def test_several_runs_and_foreign_rows_are_refused(outputs: Path, tmp_path: Path) -> None:
    write(outputs / "20261124_000000/reviews/other/gsm8k_main.jsonl", [review(0, 1, {"acc": 1.0})])
    with pytest.raises(DataError, match="several runs or models: 20261123_085124/reviews/fake, 20261124"):
        read(ImportSource(path=outputs))
    assert read(ImportSource(path=outputs / "20261124_000000/reviews/other"))
    write(tmp_path / "old/reviews/m/gsm8k.jsonl", [{"index": 0, "choices": []}])
    with pytest.raises(DataError, match=r"not a review of EvalScope 1\.0 or later"):
        read(ImportSource(path=tmp_path / "old"))
