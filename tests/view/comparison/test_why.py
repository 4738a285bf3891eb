# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path

import pytest
from tests.commands.running import ns
from tests.view.comparison.runs import answers, record, write_run

from newskills.base.errors import DataError
from newskills.prompts.renderer import load_prompt
from newskills.view.comparison.why import Explanation, explain_run_difference
from newskills.view.comparison.why_shown import as_text


def only(explanations: list[Explanation]) -> Explanation:
    (explanation,) = explanations
    return explanation


def steps(explanation: Explanation) -> dict[str, tuple[float, float, int]]:
    return {
        step.what: (round(step.difference, 6), round(step.worth, 6), step.problems) for step in explanation.steps
    }


def test_points_are_given_to_rows_grader_and_truncation(tmp_path: Path) -> None:
    """Rows 0-3 of 20 only in one run; a grader that was wrong about two answers; two answers truncated."""
    before = answers("++++" + "+" * 8 + "-" * 8)
    for i in (4, 5):
        before[i] = record(i, False, generation=f"\\boxed{{{i + 1}}}", grader="math@6")
    after = answers("????" + "+" * 12 + "-" * 4)[4:]
    after[-1] = record(
        19, False, generation="…", outcome="no_answer", outcome_cause="truncation", finish_reason="length"
    )
    a = write_run(tmp_path / "a", {None: before}, facts={"grader": "math@6 {}"})
    b = write_run(tmp_path / "b", {None: after})
    found = only(explain_run_difference(a, b))
    assert [(d.kind, d.what) for d in found.differs if d.kind == "grader"] == [("grader", "grader")]
    assert [step.what.partition(" by ")[0] for step in found.steps] == [
        "scores as they are",
        "on the problems that both have",
        "both graded",
        "without truncated problems",
    ]
    own, common, graded, whole = found.steps
    assert (own.before, own.after) == (50, 75)
    assert (common.before, common.problems, common.worth) == (37.5, 16, pytest.approx(-12.5))
    assert (graded.before, graded.worth) == (50, pytest.approx(12.5))
    assert (whole.problems, whole.after) == (15, pytest.approx(80))
    assert [step.left_out for step in found.steps] == [0, 4, 0, 1]
    told = " ".join(as_text(found).split())
    assert "15 (−1)" in told
    assert "compares the 15 problems that were not truncated in either run, and leaves out 1 other" in told


def test_the_prompt_is_shown_as_a_diff(tmp_path: Path) -> None:
    first, second = load_prompt("generic/math"), "[user]\nJust say the number.\n\n\n{problem}"
    a = write_run(tmp_path / "a", {None: answers("+-")}, facts={"prompt_hash": first.hash})
    b = write_run(tmp_path / "b", {None: answers("++")}, facts={"prompt_text": second})
    found = only(explain_run_difference(a, b))
    assert "+Just say the number." in found.prompt_diff
    assert any(line.startswith("-Solve the following math problem") for line in found.prompt_diff)
    assert max(map(len, as_text(found).splitlines())) <= 80


def test_settings_that_differ_are_named_with_both_values(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {0: answers("+-")}, settings={"inference.temperature": 0.7})
    b = write_run(tmp_path / "b", {0: answers("+-"), 1: answers("++")}, settings={"inference.top_p": 0.9})
    texts = [f"{d.kind}: {d}" for d in only(explain_run_difference(a, b)).differs]
    assert texts == [
        "model: a → b",
        "sampling: inference.temperature: 0.7 → 0.0",
        "sampling: inference.top_p: unset → 0.9",
        "sampling: samples of each problem: 1 → 2",
        "sampling: seeds: 0 → 0, 1",
    ]


def test_engine_and_chat_template_come_from_the_run_file(tmp_path: Path) -> None:
    for name, engine, tokenizer in (("a", "vllm", "x/one"), ("b", "sglang", "x/two")):
        run = write_run(tmp_path / name, {None: answers("+-")})
        unit = {"name": "gsm8k", "config": {"server": {"server_type": engine}, "tokenizer": tokenizer, "new": 1}}
        (run / "run.json").write_text(json.dumps({"units": [unit]}))
    texts = [f"{d.kind}: {d}" for d in only(explain_run_difference(tmp_path / "a", tmp_path / "b")).differs]
    assert texts == [
        "model: a → b",
        "engine: server type: vllm → sglang",
        "engine: chat template of: x/one → x/two",
    ]
    (tmp_path / "b/run.json").write_text("{broken")
    assert len(only(explain_run_difference(tmp_path / "a", tmp_path / "b")).differs) == 1


def test_a_grader_that_is_not_here_or_runs_code_is_said(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {None: answers("+-", grader="mine@1")}, facts={"grader": "mine@1 {}"})
    b = write_run(tmp_path / "b", {None: answers("+-", grader="mine@2")}, facts={"grader": "mine@2 {}"})
    for folder in (a, b):
        state = folder / "eval-results/gsm8k/output.jsonl.run.json"
        state.write_text(state.read_text().replace("math@7", "mine@1"))
    assert any("no grader of this installation" in text for text in only(explain_run_difference(a, b)).unknown)


def test_nothing_in_common_and_nothing_there(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {None: answers("+-")})
    b = write_run(tmp_path / "b", {None: answers("+-")}, benchmark="math-500")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="a has gsm8k; b has math-500"):
        explain_run_difference(a, b)
    with pytest.raises(DataError, match="empty has no results"):
        explain_run_difference(a, tmp_path / "empty")


def test_the_command(tmp_path: Path) -> None:
    write_run(tmp_path / "a", {None: answers("+-+-")})
    write_run(tmp_path / "b", {None: answers("++--", more="x")})
    path = tmp_path / "b/eval-results/gsm8k/output.jsonl"
    path.write_text(path.read_text() + "{broken\n")
    shown = ns("ns why a b", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "on the problems that both have" in shown.stdout
    assert "1 line cannot be read" in shown.stdout
    (found,) = json.loads(ns("ns why a b --json", cwd=tmp_path).stdout)
    assert found["steps"][0]["before"] == 50
