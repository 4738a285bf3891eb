# SPDX-License-Identifier: Apache-2.0
"""Folders of results, as an evaluation leaves them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

OUTCOMES = {True: "correct", False: "wrong", None: "unscored"}


def record(number: int, right: bool | None, **more: Any) -> dict[str, Any]:
    """A graded answer; `right=None`: unscored."""
    row = {
        "id": f"q{number}",
        "problem": f"What is {number} + 1?",
        "expected_answer": str(number + 1),
        "generation": f"\\boxed{{{number + 1 if right else number}}}",
        "num_generated_tokens": 10 + number % 7,
        "finish_reason": "stop",
        "predicted_answer": str(number + 1 if right else number),
        "symbolic_correct": right,
        "outcome": OUTCOMES[right],
        "grader": "math@7",
    }
    if right is not True:
        row["outcome_cause"] = "model" if right is False else "provider"
    return row | more


def write_run(
    folder: Path,
    seeds: dict[int | None, list[dict[str, Any]]],
    *,
    benchmark: str = "gsm8k",
    facts: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
) -> Path:
    """`folder/eval-results/<benchmark>` with its records, benchmark.json and exit records; returns `folder`."""
    place = folder / "eval-results" / benchmark
    place.mkdir(parents=True)
    for seed, rows in seeds.items():
        output = place / ("output.jsonl" if seed is None else f"output-rs{seed}.jsonl")
        output.write_text("".join(json.dumps(row) + "\n" for row in rows))
        output.with_name(f"{output.name}.done").touch()
        state = {
            "status": "done",
            "settings": {"server.model": folder.name, "inference.temperature": 0.0, **(settings or {})},
            "grader": "math@7 {}",
            "rows": len(rows),
        }
        output.with_name(f"{output.name}.run.json").write_text(json.dumps(state))
    described = {
        "benchmark": benchmark,
        "prompt": "generic/math",
        "prompt_hash": "aaaa",
        "grader": "math@7 {}",
        "metric": "math",
        "newskills": "0.2.0",
        "data": {"sha256": "d" * 64, "licence": "MIT"},
        **(facts or {}),
    }
    (place / "benchmark.json").write_text(json.dumps(described))
    return folder


def answers(verdicts: str, **more: Any) -> list[dict[str, Any]]:
    """One record for each of `verdicts`: + right, - wrong, ? unscored."""
    return [record(i, {"+": True, "-": False, "?": None}[sign], **more) for i, sign in enumerate(verdicts)]
