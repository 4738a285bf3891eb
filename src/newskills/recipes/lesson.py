# SPDX-License-Identifier: Apache-2.0
"""The whole loop on this machine, as the smallest case of `ns improve`: two rounds with settings of their own, SFT on
the answers of a solver and GRPO on other problems, each measured on the same held-out problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from newskills.base.callbacks import PrintLine
from newskills.base.paired import PairedDifference, paired_difference
from newskills.base.store import atomic_write, read_rows, write_rows
from newskills.base.tables import WIDTH, markdown_table, output_width, table_lines
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import prepare
from newskills.recipes.improve.loop import Improvement, run_improvement
from newskills.recipes.improve.records import BASE, EVALUATIONS_FOLDER, ImproveKeys, ImproveSpec, ImproveStage
from newskills.run.planning.plan import RESULTS_FOLDER
from newskills.run.training.steps_shown import StepReporter

LESSON = "sorting-lesson"
PROBLEM_COUNT = 300
"""Held out; enough that a lift of some points is told from chance."""
MIN_PROBLEMS = 8
"""Held-out problems with which the first test can say that a model is better."""
MAX_REPLY_TOKENS = 64
"""Of a reply at most; four numbers in order take 15, so nobody is cut off who answers as told."""
SFT = ImproveKeys(
    problems=704, samples=0, epochs=1.0, learning_rate=2e-3, max_tokens=MAX_REPLY_TOKENS, save_every=20
)
GRPO = ImproveKeys(problems=2000, samples=0, steps=30, learning_rate=3e-4, max_tokens=MAX_REPLY_TOKENS, checked=64)


class LessonSpec(Struct, frozen=True, kw_only=True):
    """Where it all goes, which model, and how to train.

    watch    title → what shows a training
    grpo     `checked` of its problems choose the checkpoint; the held-out problems choose none
    """

    output_dir: Path
    model: str
    watch: Callable[[str], AbstractContextManager[StepReporter]]
    data_dir: Path | None = None
    sft: ImproveKeys = SFT
    grpo: ImproveKeys = GRPO
    problems: int = PROBLEM_COUNT
    timeout: float = 300.0


def shorten_lesson(spec: LessonSpec, share: float) -> LessonSpec:
    """Return the lesson with this share of its problems, to train on as to evaluate on, and of its steps."""
    sft, grpo = spec.sft, spec.grpo
    return replace(
        spec,
        problems=max(MIN_PROBLEMS, round(share * spec.problems)),
        sft=replace(sft, problems=max(MIN_PROBLEMS, round(share * sft.problems))),
        grpo=replace(
            grpo,
            problems=max(2 * MIN_PROBLEMS, round(share * grpo.problems)),
            steps=max(1, round(share * grpo.steps)),
            checked=max(1, round(share * grpo.checked)),
        ),
    )


class LessonStage(Struct, frozen=True):
    """A model of the loop and its held-out scores: problem id → 1 (right) or 0; what was not scored is missing.

    `within`: replies that hold the right answer somewhere; `cut`: those that reached the most tokens.
    """

    name: str
    weights: Path
    scores: dict[str, float]
    within: int = 0
    cut: int = 0

    @property
    def share(self) -> float:
        return sum(self.scores.values()) / len(self.scores)

    @property
    def shares(self) -> tuple[str, str, str]:
        """Right, right somewhere in the reply, truncated: in percent."""
        count = len(self.scores)
        return (
            f"{100 * self.share:.1f} %",
            f"{100 * self.within / count:.1f} %",
            f"{100 * self.cut / count:.1f} %",
        )


def run_lesson(spec: LessonSpec, *, say: PrintLine) -> tuple[list[LessonStage], Improvement]:
    """Run the lesson, base → after SFT → after GRPO, and return its stages and which were kept. Raises NewskillsError;
    what is done stays done."""
    improvement = run_improvement(_improvement_spec(spec, say), say=say)
    names = [BASE, *(record.name for record in improvement.rounds if record.test is not None)]
    stages = [_lesson_stage(name, spec) for name in names]
    say(f"ended: {improvement.why}\n\n{comparison_report(stages, spec)}")
    return stages, improvement


def _improvement_spec(spec: LessonSpec, say: PrintLine) -> ImproveSpec:
    """Return the lesson as a specification of `ns improve`, and write its data: the first problems are solved, the
    others teach by reward."""
    benchmark = get_benchmark(LESSON)
    prepared = prepare(benchmark, data_dir=spec.data_dir, splits=["train", "test"])
    train = list(read_rows(prepared.splits[0].path))
    solved, others = train[: spec.sft.problems], train[spec.sft.problems :]
    data = spec.output_dir / "data"
    files = {name: data / f"{name}.jsonl" for name in ("solved", "solutions", "others")}
    if not files["others"].is_file():
        write_rows(files["solved"], solved)
        write_rows(files["solutions"], ({"id": row["id"], "generation": row["expected_answer"]} for row in solved))
        write_rows(files["others"], others)
    say(f"data: a solver's answers to {len(solved)} problems for SFT, {len(others)} other problems for GRPO")
    sft, grpo = (
        ImproveStage(name="sft", keys=spec.sft, training_data=files["solved"], solutions=(files["solutions"],)),
        ImproveStage(name="grpo", keys=spec.grpo, method="grpo", training_data=files["others"]),
    )
    return ImproveSpec(
        output_dir=spec.output_dir,
        model=spec.model,
        benchmark=LESSON,
        watch=spec.watch,
        rounds=2,
        stages=(sft, grpo),
        data_dir=spec.data_dir,
        timeout=spec.timeout,
        keys=ImproveKeys(held_out=spec.problems, max_tokens=MAX_REPLY_TOKENS),
        resume_with="ns quickstart",
    )


def _lesson_stage(name: str, spec: LessonSpec) -> LessonStage:
    """Return the stage of a model as the records of its evaluation have it."""
    path = spec.output_dir / EVALUATIONS_FOLDER / name / RESULTS_FOLDER / LESSON / "output.jsonl"
    records = [row for row in read_rows(path) if row["outcome"] != "unscored"]
    return LessonStage(
        name,
        spec.output_dir / "models" / f"{name}.F16.gguf",
        {row["id"]: float(row["outcome"] == "correct") for row in records},
        within=sum(row["expected_answer"] in row["generation"] for row in records),
        cut=sum(row["finish_reason"] == "length" for row in records),
    )


def comparison_report(stages: Sequence[LessonStage], spec: LessonSpec) -> str:
    """Return the paired comparison for a terminal, and write it to report.md as well."""
    scores: list[tuple[object, ...]] = [
        (
            "model",
            "correct",
            "answer anywhere in the reply",
            f"truncated at {MAX_REPLY_TOKENS} tokens",
            "held-out problems",
            "file",
        )
    ]
    for stage in stages:
        scores.append((stage.name, *stage.shares, len(stage.scores), stage.weights))
    lifts: list[tuple[object, ...]] = [("lift on the same problems", "points (95 % interval)", "p", "method")]
    for before, after in pairwise(stages):
        comparison = compare_stages(after.scores, before.scores)
        interval = (
            f"{100 * comparison.difference:+.1f} ({100 * comparison.low:+.1f} to {100 * comparison.high:+.1f})"
        )
        how = f"{comparison.method}, n = {comparison.n}"
        lifts.append((f"{before.name} → {after.name}", interval, f"{comparison.p_value:.2g}", how))
    path = spec.output_dir / "report.md"
    text = "\n".join([*markdown_table(scores), "", *markdown_table(lifts)])
    with atomic_write(path) as file:
        file.write(
            f"# {LESSON}: {spec.problems} held-out problems, greedy, one server and data type\n\n{text}\n".encode()
        )
    width = output_width() or WIDTH
    shown = "\n".join([*table_lines(scores[1:], scores[0], width), "", *table_lines(lifts[1:], lifts[0], width)])
    records = f"{spec.output_dir}/eval/<model>/{RESULTS_FOLDER}/{LESSON}/output.jsonl"
    return f"{shown}\n\nreport    {path}\nrecords   {records}"


def compare_stages(after: Mapping[str, float], before: Mapping[str, float]) -> PairedDifference:
    """Compare two models on the problems that both have a score for."""
    common = sorted(set(after) & set(before))
    return paired_difference([[before[name]] for name in common], [[after[name]] for name in common])
