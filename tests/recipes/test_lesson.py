# SPDX-License-Identifier: Apache-2.0
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns

from newskills.base.errors import DataError
from newskills.base.store import read_rows
from newskills.benchmarks.reasoning.lessons import sorting_rows
from newskills.recipes.improve.records import ImproveKeys
from newskills.recipes.lesson import (
    GRPO,
    MAX_REPLY_TOKENS,
    SFT,
    LessonSpec,
    LessonStage,
    comparison_report,
    run_lesson,
    shorten_lesson,
)
from newskills.run.grade import grade_rows
from newskills.run.rewarding.graders import BatchGrader
from newskills.run.training.skill import select_accepted
from newskills.run.training.steps_shown import StepReporter
from newskills.train.settings import TrainerSettings

ROWS = sorting_rows("test")[:40]


def test_train_and_test_are_apart_and_always_the_same() -> None:
    train, test = sorting_rows("train"), sorting_rows("test")
    assert (len(train), len(test)) == (2000, 400)
    assert not {row["question"] for row in train} & {row["question"] for row in test}
    assert sorting_rows("test") == test
    for row in test[:50]:
        numbers = [int(part) for part in row["expected_answer"].split(", ")]
        assert numbers == sorted(numbers, reverse="descending" in row["question"])
        assert row["question"].endswith(". Reply with nothing but the numbers, separated by commas.")


def test_rewards_are_the_verdicts_of_an_evaluation() -> None:
    replies = ["{}", " {}\n", "{}.", "Here: {}", "", "1, 2, 3, 4"]
    records = [
        {**row, "generation": reply.format(row["expected_answer"]), "finish_reason": "stop"}
        for row in ROWS
        for reply in replies
    ]
    with BatchGrader("exact", {}) as verdict:
        rewards = [score.outcome for score in verdict(records)]
        assert verdict(records[:3])[0].outcome == "correct"
    assert rewards == [row["outcome"] for row in grade_rows([dict(row) for row in records], "exact", {})]
    assert {"correct", "wrong"} <= set(rewards)


def test_the_filter_keeps_what_the_grader_accepts() -> None:
    answers = [row["expected_answer"] if index % 3 else "no idea" for index, row in enumerate(ROWS)]
    with BatchGrader("exact", {}) as verdict:
        kept = select_accepted(ROWS, answers, verdict)
        assert [row["id"] for row, _ in kept] == [row["id"] for index, row in enumerate(ROWS) if index % 3]
        with pytest.raises(DataError, match="accepts none"):
            select_accepted(ROWS, ["?"] * len(ROWS), verdict)


def test_the_report_compares_the_same_problems(tmp_path: Path) -> None:
    spec = LessonSpec(output_dir=tmp_path, model="m", watch=lambda _: nullcontext(StepReporter()), problems=40)
    base = {str(index): 0.0 for index in range(40)}
    tuned = {name: float(int(name) < 30) for name in base if name != "39"}
    stages = [
        LessonStage("base", tmp_path, base, within=10, cut=3),
        LessonStage("sft", tmp_path, tuned, within=30),
    ]
    shown = comparison_report(stages, spec)
    assert max(map(len, shown.partition("report ")[0].splitlines())) <= 80
    text = (tmp_path / "report.md").read_text()
    assert "| model | correct | answer anywhere in the reply | truncated at 64 tokens |" in text
    assert "| base | 0.0 % | 25.0 % | 7.5 % | 40 |" in text
    assert "| sft | 76.9 % | 76.9 % | 0.0 % | 39 |" in text
    assert "| base → sft | +76.9 (" in text
    assert "mcnemar, n = 39" in text
    assert "1.9e-09" in text
    assert "40 held-out problems" in text
    assert {"76.9", "mcnemar,", "1.9e-09"} <= set(shown.split())


def test_all_models_of_the_lesson_have_the_limit_that_its_report_names() -> None:
    assert SFT.max_tokens == GRPO.max_tokens == MAX_REPLY_TOKENS


@pytest.mark.parametrize(("share", "sizes"), [(1.0, (300, 704, 2000, 30, 64)), (0.1, (30, 70, 200, 3, 6))])
def test_a_share_is_that_of_training_and_evaluation(tmp_path: Path, share: float, sizes: tuple[int, ...]) -> None:
    spec = LessonSpec(output_dir=tmp_path, model="m", watch=lambda _: nullcontext(StepReporter()))
    cut = shorten_lesson(spec, share)
    assert (cut.problems, cut.sft.problems, cut.grpo.problems, cut.grpo.steps, cut.grpo.checked) == sizes
    assert shorten_lesson(spec, 0.001).grpo.steps == 1


def test_a_plan_of_a_share_says_what_it_shrinks(tmp_path: Path) -> None:
    shown = ns("ns quickstart --share 0.1 --dry_run", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    told = " ".join(shown.stdout.split())
    for part in ("30 held-out problems", "answers to 70 problems for SFT", "3 steps of GRPO"):
        assert part in told
    assert "more than all problems" in ns("ns quickstart --share 2 --dry_run", cwd=tmp_path).stderr


def small_lesson(tmp_path: Path, model: Path, steps: list[Any]) -> LessonSpec:
    threads = TrainerSettings(threads=1)
    return LessonSpec(
        output_dir=tmp_path / "lesson",
        model=str(model),
        data_dir=tmp_path / "data-of-benchmarks",
        watch=lambda title: nullcontext(
            StepReporter(on_step=lambda progress: steps.append((title, progress.done)))
        ),
        sft=ImproveKeys(problems=8, samples=0, epochs=1, batch_size=4, learning_rate=1e-3, trainer=threads),
        grpo=ImproveKeys(
            problems=16, samples=0, steps=1, batch_size=2, group_size=4, max_tokens=16, checked=4, trainer=threads
        ),
        problems=12,
    )


@pytest.mark.nightly
@pytest.mark.local_model
@pytest.mark.slow
def test_the_loop_runs_and_runs_again_for_nothing(small_model: Path, tmp_path: Path) -> None:
    """A model of three blocks learns nothing in two steps, so the gate keeps the initial one, and says so."""
    spoken: list[str] = []
    steps: list[Any] = []
    spec = small_lesson(tmp_path, small_model, steps)
    stages, improvement = run_lesson(spec, say=spoken.append)
    assert [stage.name for stage in stages] == ["base", "sft", "grpo"]
    assert all(len(stage.scores) == 12 for stage in stages)
    assert steps == [("SFT, sft", 1), ("SFT, sft", 2), ("GRPO, grpo", 1)]
    assert [record.kept for record in improvement.rounds] == [False, False]
    assert improvement.model == spec.output_dir / "models/base"
    assert any("overlap: 0 of 400 questions" in text for text in spoken)
    assert len(list(read_rows(spec.output_dir / "rounds/sft/data/train.jsonl"))) == 8
    states = [json.loads(path.read_text()) for path in (spec.output_dir / "eval").rglob("*.run.json")]
    assert len(states) == 3
    assert len({state["settings"]["inference.tokens_to_generate"] for state in states}) == 1
    steps.clear()
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.gguf")}
    assert run_lesson(spec, say=spoken.append) == (stages, improvement)
    assert not steps
    assert files == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.gguf")}
