# SPDX-License-Identifier: Apache-2.0
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of
from tests.view.comparison.runs import answers, record, write_run

import newskills
from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.graders.math.grader import VERSION
from newskills.view.comparison.regrade import RegradeOptions, regrade_run

FORMS = ("\\boxed{1}", "The answer is 2.", "so we get 3", "\\boxed{9}", "I do not know")
"""Replies to 0 + 1, 1 + 1, …: in a box, in a phrase, bare, wrong in a box, none."""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Verdicts of an older grader, which took the bare number and called the phrase wrong."""
    old = {"grader": "math@1"}
    rows = [record(i, i in (0, 2), generation=text, **old) for i, text in enumerate(FORMS)]
    write_run(tmp_path / "a", {0: rows, 1: rows}, facts={"grader": "math@1 {}"})
    return tmp_path


def only(regraded: Iterable[Any]) -> Any:
    (item,) = regraded
    return item


def test_verdicts_that_change_are_listed(results: Path) -> None:
    item = only(regrade_run(results / "a", RegradeOptions(), []))
    assert (item.grader_before, item.grader_after) == ("math@1", f"math@{VERSION}")
    changed = [(flip.id, flip.seed, flip.before, flip.after) for flip in item.flips]
    assert changed == [
        *((("q1", seed, "wrong", "correct")) for seed in (0, 1)),
        *((("q2", seed, "correct", "no_answer")) for seed in (0, 1)),
        *((("q4", seed, "wrong", "no_answer")) for seed in (0, 1)),
    ]
    assert (item.before.value, item.after.value, item.samples) == (40, 40, 10)
    assert item.changes == {"wrong → correct": 2, "correct → no_answer": 2, "wrong → no_answer": 2}


@pytest.mark.nightly
def test_the_share_of_the_grader(results: Path) -> None:
    item = only(regrade_run(results / "a", RegradeOptions(), []))
    assert {name: number.value for name, number in item.spread.items()} == {
        "strict": 20,
        "usual": 40,
        "lenient": 60,
    }
    strict = only(regrade_run(results / "a", RegradeOptions(reading="strict", spread=False), []))
    assert (strict.after.value, strict.spread) == (20, {})
    lenient = only(regrade_run(results / "a", RegradeOptions(reading="lenient"), []))
    assert lenient.after.value == 60


def test_multiple_choice_has_readings_too(tmp_path: Path) -> None:
    replies = ("\\boxed{B}", "Answer: B", "B")
    rows = [
        record(i, True, generation=text, expected_answer="B", predicted_answer="B", grader="multichoice@5")
        for i, text in enumerate(replies)
    ]
    write_run(tmp_path / "a", {None: rows}, facts={"grader": "multichoice@5 {}", "metric": "multichoice"})
    spread = only(regrade_run(tmp_path / "a", RegradeOptions(), [])).spread
    assert spread["strict"].value == pytest.approx(100 / 3)
    assert spread["usual"].value == spread["lenient"].value == 100


def test_records_stay_as_they_are_and_new_ones_go_elsewhere(results: Path) -> None:
    before = {path: path.read_bytes() for path in (results / "a").rglob("*") if path.is_file()}
    shown = ns("ns regrade a --output_dir b", cwd=results)
    assert shown.returncode == 0, shown.stderr
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "6 of 10 verdicts changed" in shown.stdout
    assert "grader spread: 40.00 points" in shown.stdout
    assert {path: path.read_bytes() for path in before} == before
    rows = rows_of(results / "b/eval-results/gsm8k/output-rs1.jsonl")
    assert [row["outcome"] for row in rows] == ["correct", "correct", "no_answer", "wrong", "no_answer"]
    assert {row["grader"] for row in rows} == {f"math@{VERSION}"}
    assert "symbolic_correct | no_answer" in ns("ns summarize_results b", cwd=results).stdout
    again = ns("ns regrade a --output_dir b", cwd=results)
    assert (again.returncode, "is there already" in again.stderr) == (2, True)
    same = ns("ns compare a b --allow grader --flips 0", cwd=results)
    assert "No significant difference between a and b" in same.stdout


def test_settings_go_over_those_of_the_records(tmp_path: Path) -> None:
    rows = [record(0, False, generation="\\boxed{1.05}"), record(1, True)]
    write_run(tmp_path / "a", {None: rows}, facts={"grader": 'math@3 {"relaxed_extraction":true}'})
    shown = ns("ns regrade a ++relative_tolerance=0.1 --json --output_dir b", cwd=tmp_path)
    (item,) = json.loads(shown.stdout)
    assert [(flip["id"], flip["after"]) for flip in item["flips"]] == [("q0", "correct")]
    described = json.loads((tmp_path / "b/eval-results/gsm8k/benchmark.json").read_text())
    assert described["grader"] == f'math@{VERSION} {{"relative_tolerance":0.1,"relaxed_extraction":true}}'


def test_a_version_that_is_not_here_is_refused(results: Path) -> None:
    assert newskills.regrade(results_dir=str(results / "a"), grader=f"math@{VERSION}")
    with pytest.raises(ConfigError, match=rf"grades with math@{VERSION}; verdicts of math@1 need"):
        regrade_run(results / "a", RegradeOptions(grader="math@1"), [])
    with pytest.raises(UnknownNameError, match="did you mean 'math'"):
        regrade_run(results / "a", RegradeOptions(grader="maths"), [])
    with pytest.raises(ConfigError, match="'literal' has no strict extraction"):
        regrade_run(results / "a", RegradeOptions(grader="literal", reading="strict"), [])
    with pytest.raises(ConfigError, match="exclude each other"):
        newskills.regrade(results_dir=str(results / "a"), strict=True, lenient=True)
    with pytest.raises(ConfigError, match="never rewritten"):
        regrade_run(results / "a", RegradeOptions(output_dir=results / "a"), [])


def test_what_cannot_be_graded_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="has no results to grade"):
        regrade_run(tmp_path / "empty", RegradeOptions(), [])
    rows = answers("+-", grader="another harness")
    write_run(tmp_path / "a", {None: rows}, facts={"grader": ""})
    state = tmp_path / "a/eval-results/gsm8k/output.jsonl.run.json"
    state.unlink()
    with pytest.raises(DataError, match="name no grader of this installation; give --grader"):
        regrade_run(tmp_path / "a", RegradeOptions(), [])
    assert only(regrade_run(tmp_path / "a", RegradeOptions(grader="math"), [])).after.value == 50


def test_a_corrupted_line_and_an_unfinished_benchmark(results: Path) -> None:
    path = results / "a/eval-results/gsm8k/output-rs0.jsonl"
    path.write_text("{broken\n" + path.read_text())
    place = results / "a/eval-results/math-500"
    place.mkdir()
    (place / "output.jsonl-async").write_text('{"id": 1}\n')
    shown = ns("ns regrade a --output_dir b", cwd=results)
    assert shown.returncode == 0
    assert "1 line cannot be read" in shown.stderr
    assert "math-500 has no finished output files" in shown.stderr
    assert len(rows_of(results / "b/eval-results/gsm8k/output-rs0.jsonl")) == 5
