# SPDX-License-Identifier: Apache-2.0
"""The whole loop on this machine: measure, make data, fine-tune, reinforce, measure again on the same held-out set.

Every stage leaves a folder that counts only when it is whole, so the same command goes on where it was stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec import Struct

from newskills.base.benchmark import Benchmark
from newskills.base.callbacks import PrintLine
from newskills.base.errors import DataError
from newskills.base.paired import PairedDifference, paired_difference
from newskills.base.records import Row
from newskills.base.store import atomic_write, read_rows, write_rows
from newskills.base.tables import WIDTH, markdown_table, output_width, table_lines
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import prepare
from newskills.models.serving.weights import resolve_weights
from newskills.recipes.evaluating import RecipeServer, evaluate_quietly
from newskills.recipes.skill import RewardConfig, Skill, accepted
from newskills.recipes.steps_shown import StepReporter
from newskills.recipes.training import model_folder, served_file, train_to_end
from newskills.run.planning.plan import RESULTS, BenchmarkRun
from newskills.run.rewarding.graders import BatchGrader
from newskills.run.rewarding.questions import asking_of
from newskills.train.loops.evaluation import EvalSettings, HeldOut
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import GrpoConfig
from newskills.train.loops.sft import SftConfig
from newskills.train.loops.stepping import Hooks
from newskills.train.loops.stopping import StoppedError, stop_on_signals
from newskills.train.trainers import Trainer, TrainerSettings, make_trainer

Loop = Callable[[Trainer, TrainingFolder, Hooks], bool]
LESSON = "sorting-lesson"
PROBLEMS = 300
"""Held out; enough that a lift of some points is told from chance."""
TOKENS = 64
"""Of a reply at most; four numbers in order take 15, so nobody is cut off who answers as told."""


class LessonSpec(Struct, frozen=True, kw_only=True):
    """Where it all goes, which model, and how long to train.

    watch    title → what shows a training
    apart    problems of the training data that choose GRPO's checkpoint; the test problems choose nothing
    threads  of the trainer; 0 = one a core
    """

    output_dir: Path
    model: str
    watch: Callable[[str], AbstractContextManager[StepReporter]]
    data_dir: Path | None = None
    sft: SftConfig = SftConfig(steps=44, learning_rate=2e-3)
    grpo: GrpoConfig = GrpoConfig(steps=30, learning_rate=3e-4, max_tokens=TOKENS)
    problems: int = PROBLEMS
    apart: int = 64
    threads: int = 0
    timeout: float = 300.0


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
        """Right, right somewhere in the reply, cut off: in per cent."""
        count = len(self.scores)
        return (
            f"{100 * self.share:.1f} %",
            f"{100 * self.within / count:.1f} %",
            f"{100 * self.cut / count:.1f} %",
        )


def lesson(spec: LessonSpec, *, say: PrintLine) -> list[LessonStage]:
    """base → after SFT → after GRPO. Raises NewskillsError; what is done stays done."""
    benchmark = get_benchmark(LESSON)
    train, _, data = _data(benchmark, spec, say)
    weights = resolve_weights(spec.model, say=say)
    say(f"2/5 base: evaluating {spec.model} on this machine's CPU; Ctrl-C stops, the same command resumes")
    stages = [_measure("base", weights, benchmark, spec, say)]
    folder = model_folder(str(weights), spec.output_dir / "models/base", say=say)
    skill = Skill(folder, asking_of(benchmark, data, str(folder)))
    half = spec.sft.steps * spec.sft.batch_size
    with BatchGrader(benchmark.grader, benchmark.grader_config) as verdict:
        pairs = accepted(train[:half], (str(row["expected_answer"]) for row in train[:half]), verdict)
        _keep_examples(skill, pairs, spec.output_dir / "data/sft.jsonl")
        say(
            f"3/5 SFT: the grader accepted {len(pairs)} of {half} answers of the solver; the same grader evaluates"
        )
        tuned = _fine_tuned(skill, folder, pairs, spec, say)
        stages.append(_measure("sft", served_file(tuned), benchmark, spec, say))
        say(f"4/5 GRPO: the same grader rewards samples on {len(train) - half} other problems")
        rewarded = _reinforced(skill, tuned, train[half:], spec, verdict, say)
        stages.append(_measure("grpo", served_file(rewarded), benchmark, spec, say))
    say(f"5/5 done\n\n{report(stages, spec)}")
    return stages


def _data(benchmark: Benchmark, spec: LessonSpec, say: PrintLine) -> tuple[list[Row], list[Row], Path]:
    """Rows to learn from and held-out rows, and the file of the former. Raises DataError for a question in both."""
    prepared = prepare(benchmark, data_dir=spec.data_dir, splits=["train", "test"])
    train, test = (list(read_rows(split.path)) for split in prepared.splits)
    shared = {row["question"] for row in train} & {row["question"] for row in test}
    if shared:
        raise DataError(f"{len(shared)} questions of {benchmark.name} are in train and in test.")
    say(f"1/5 data: {len(train)} training problems, {len(test)} held out; {len(shared)} questions are in both")
    return train, test, prepared.splits[0].path


def _measure(name: str, weights: Path, benchmark: Benchmark, spec: LessonSpec, say: PrintLine) -> LessonStage:
    """Greedy answers to the held-out problems from `weights`, served as any model is. Goes on where it was stopped."""
    out = spec.output_dir / "eval" / name
    prepared = prepare(benchmark, data_dir=spec.data_dir, splits=["test"]).splits[0]
    settings = {"max_samples": spec.problems, "inference.tokens_to_generate": TOKENS, "inference.temperature": 0.0}
    cut = msgspec.structs.replace(benchmark, defaults={**benchmark.defaults, **settings})
    run = BenchmarkRun(name=LESSON, benchmark=cut, samples=0, split="test", input_file=prepared.path)
    server = RecipeServer(resume_with="ns quickstart", timeout=spec.timeout)
    ((output,),) = evaluate_quietly(name, weights, [run], out, server).values()
    records = [row for row in read_rows(output) if row["outcome"] != "unscored"]
    stage = LessonStage(
        name,
        weights,
        {row["id"]: float(row["outcome"] == "correct") for row in records},
        within=sum(row["expected_answer"] in row["generation"] for row in records),
        cut=sum(row["finish_reason"] == "length" for row in records),
    )
    right, within, short = stage.shares
    say(
        f"    {name}: {right} of {len(records)} held-out problems correct ({within} with the answer anywhere "
        f"in the reply); {short} of the replies cut off at {TOKENS} tokens"
    )
    return stage


def _keep_examples(skill: Skill, pairs: Sequence[tuple[Row, str]], path: Path) -> None:
    if not path.is_file():
        write_rows(path, ({**skill.pair(row, answer), "id": row["id"]} for row, answer in pairs))


def _fine_tuned(
    skill: Skill, base: Path, pairs: Sequence[tuple[Row, str]], spec: LessonSpec, say: PrintLine
) -> Path:
    examples = [skill.example(row, answer) for row, answer in pairs]
    return _train(
        "sft",
        base,
        spec.sft,
        spec,
        say,
        lambda trainer, folder, hooks: trainer.sft(examples, spec.sft, folder, hooks),
    )


def _reinforced(
    skill: Skill, base: Path, rows: Sequence[Row], spec: LessonSpec, verdict: BatchGrader, say: PrintLine
) -> Path:
    problems = [skill.problem(row) for row in rows]
    scorer = skill.scorer(verdict, RewardConfig())
    held_out = HeldOut(
        problems=problems[-spec.apart :],
        scorer=scorer,
        settings=EvalSettings(every=15, max_tokens=TOKENS, batch_size=spec.apart),
    )
    return _train(
        "grpo",
        base,
        spec.grpo,
        spec,
        say,
        lambda trainer, folder, hooks: trainer.grpo(
            problems[: -spec.apart],
            spec.grpo,
            folder,
            scorer,
            msgspec.structs.replace(hooks, held_out=held_out),
        ),
    )


def _train(name: str, base: Path, config: Struct, spec: LessonSpec, say: PrintLine, learn: Loop) -> Path:
    """Trains LoRA pairs on `base` and merges them: a folder like `base`. Raises StoppedError where a signal came."""
    target = spec.output_dir / "models" / name
    settings = {**msgspec.to_builtins(config), "model": str(base)}
    folder = TrainingFolder(spec.output_dir / "training" / name, settings)
    if target.is_dir():
        folder.close()
        return target
    trainer = make_trainer("cpu", base, TrainerSettings(threads=spec.threads))
    with stop_on_signals() as stop, spec.watch(name.upper()) as watch:
        hooks = Hooks(on_start=watch.on_start, on_step=watch.on_step, stop=stop)
        train_to_end(trainer, folder, target, lambda trainer_in_use: learn(trainer_in_use, folder, hooks))
        if not stop():
            if text := folder.verdict():
                say(f"    {text}")
            return target
    at = folder.last.step if folder.last else 0
    raise StoppedError(f"{name.upper()}: stopped after step {at}; run the same command to resume from there.")


def report(stages: Sequence[LessonStage], spec: LessonSpec) -> str:
    """The paired comparison for a terminal; written to report.md as well."""
    scores: list[tuple[object, ...]] = [
        (
            "model",
            "correct",
            "answer anywhere in the reply",
            f"cut off at {TOKENS} tokens",
            "held-out problems",
            "file",
        )
    ]
    for stage in stages:
        scores.append((stage.name, *stage.shares, len(stage.scores), stage.weights))
    lifts: list[tuple[object, ...]] = [("lift on the same problems", "points (95 % interval)", "p", "method")]
    for before, after in pairwise(stages):
        comparison = compared(after.scores, before.scores)
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
    return f"{shown}\n\nreport    {path}\nrecords   {spec.output_dir}/eval/<model>/{RESULTS}/{LESSON}/output.jsonl"


def compared(after: Mapping[str, float], before: Mapping[str, float]) -> PairedDifference:
    """On the problems that both have a score for."""
    common = sorted(set(after) & set(before))
    return paired_difference([[before[name]] for name in common], [[after[name]] for name in common])
