# SPDX-License-Identifier: Apache-2.0
"""Bundles of nemo-evaluator 0.3 and later become records of ours; rows as version 0.4.0 writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import write
from tests.exchange.imported import imported, only

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.exchange.importers import ImportSource, read


def sample(index: int, repeat: int, reward: float, **more: Any) -> Row:
    """One line of `results.jsonl`."""
    return {
        "problem_idx": index,
        "repeat": repeat,
        "reward": reward,
        "scorer_rewards": {"scorer:exact": 1.0 - reward},
        "prompt": f"Question {index}?",
        "model_response": "The answer is 4.",
        "extracted_answer": "4",
        "expected_answer": "4",
        "scoring_details": {"method": "numeric_match"},
        "metadata": {"category": "sums"},
        "tokens": 12,
        "latency_ms": 80.5,
        **more,
    }


def failed(index: int, method: str, category: str) -> Row:
    details = {"method": method, "error_category": category, "error": "it broke"}
    return sample(index, 0, 0.0, model_response="", extracted_answer=None, scoring_details=details)


def bundle(folder: Path, name: str, rows: list[Row], when: str = "20260102T030405Z") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "run_id": f"eval-{when}-{name}",
        "config_hash": "sha256:0",
        "sdk_version": "0.4.0",
        "timestamp": when,
        "config": {"model": "fake"},
        "benchmark": {"name": name, "samples": len(rows), "repeats": 1, "scores": {"mean_reward": 0.5}},
        "n_results": len(rows),
    }
    path = folder / f"eval-{when}-{name.replace(':', '_')}.json"
    path.write_text(json.dumps(content, indent=2))
    write(folder / "results.jsonl", rows)
    return path


def test_a_bundle_is_summarised(tmp_path: Path) -> None:
    rows = [sample(index, repeat, float(index == 0)) for index in range(2) for repeat in range(2)]
    bundle(tmp_path / "out/gsm8k", "gsm8k", rows)
    (tmp_path / "out/nel_run.json").write_text("{}")
    metrics = imported(tmp_path / "out", tmp_path / "imported")
    found = metrics["gsm8k"]["pass@1[avg-of-2]"]
    assert found["num_entries"] == 2
    assert 50.0 in found.values()


def test_what_a_record_holds(tmp_path: Path) -> None:
    path = bundle(tmp_path, "skills:mmlu-pro", [sample(0, 0, 0.5), sample(1, 0, 1.0)])
    one = only(path)
    first, second = one.seeds[None]
    assert one.benchmark == "skills-mmlu-pro"
    assert first["is_correct"] == 0.5
    assert (second["outcome"], second["predicted_answer"], second["num_generated_tokens"]) == ("correct", "4", 12)
    assert second["grader"] == "nemo-evaluator/numeric_match"
    assert (one.origin["model"], one.origin["nemo_evaluator"], one.origin["score"]) == ("fake", "0.4.0", "reward")
    assert [row["is_correct"] for row in only(path, score="exact").seeds[None]] == [0.5, False]
    with pytest.raises(DataError, match="no scorer 'exat'; did you mean 'exact'"):
        read(ImportSource(path=path, score="exat"))


def test_what_was_never_graded_is_unscored_and_not_wrong(tmp_path: Path) -> None:
    rows = [
        sample(0, 0, 1.0),
        failed(1, "infra_error", "infra_error"),
        failed(2, "solve_failed", "solve_timeout"),
        failed(3, "system_error", "system"),
        failed(4, "solve_failed", "turn_budget_exhausted"),
        sample(5, 0, 0.0, scoring_details={"method": "judge", "needs_judge": True}),
        sample(6, 0, 7.0),
    ]
    one = only(bundle(tmp_path, "gsm8k", rows))
    causes = [row.get("outcome_cause", row["outcome"]) for row in one.seeds[None]]
    assert causes == ["correct", "provider", "timeout", "harness", "wrong", "judge", "grader"]
    assert "5 of 7 were never graded" in one.notes[0]


def test_the_newest_of_a_folder_counts_and_several_runs_are_an_error(tmp_path: Path) -> None:
    bundle(tmp_path / "a", "gsm8k", [sample(0, 0, 1.0)], "20260101T000000Z")
    newest = bundle(tmp_path / "a", "gsm8k", [sample(0, 0, 1.0)])
    assert only(tmp_path / "a").origin["path"] == str(newest)
    bundle(tmp_path / "b", "gsm8k", [sample(0, 0, 0.0)])
    with pytest.raises(DataError, match="several runs of 'gsm8k'"):
        read(ImportSource(path=tmp_path))
    bundle(tmp_path / "c/mmlu", "mmlu", [sample(0, 0, 0.0)])
    bundle(tmp_path / "c/gsm8k", "gsm8k", [sample(0, 0, 0.0)])
    assert [one.benchmark for one in read(ImportSource(path=tmp_path / "c"))] == ["gsm8k", "mmlu"]


def test_bundles_without_samples_are_refused(tmp_path: Path) -> None:
    path = bundle(tmp_path, "gsm8k", [])
    with pytest.raises(DataError, match="has scores but no samples"):
        read(ImportSource(path=path))
    write(tmp_path / "results.jsonl", [{"problem_idx": 0}])
    with pytest.raises(
        DataError, match="row 1 is not a sample of nemo-evaluator: it has no reward, model_response"
    ):
        read(ImportSource(path=path))
